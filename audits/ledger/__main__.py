"""``python -m audits.ledger``: writes the ledger's pages from the record of a run."""

from audits.ledger.command import main

if __name__ == "__main__":
    main()
