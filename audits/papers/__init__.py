"""The statements of papers, a module for each: place, and audits or the reason for none."""

from audits.papers.baselines import PAPER as BASELINES
from audits.papers.blink import PAPER as BLINK
from audits.papers.caribou import PAPER as CARIBOU
from audits.papers.daigavane import PAPER as DAIGAVANE
from audits.papers.decoupled import PAPER as DECOUPLED
from audits.papers.dpar import PAPER as DPAR
from audits.papers.dprr import PAPER as DPRR
from audits.papers.gap import PAPER as GAP
from audits.papers.graphpub import PAPER as GRAPH_PUB
from audits.papers.heterorr import PAPER as HETERO_RR
from audits.papers.heterpoisson import PAPER as HETER_POISSON
from audits.papers.lpgnn import PAPER as LPGNN
from audits.papers.privdpr import PAPER as PRIVDPR

NEWER = (BLINK, CARIBOU, DECOUPLED, DAIGAVANE, GAP, HETER_POISSON, PRIVDPR)
"""Code reviews: of the text the abstract was read, at most."""

PAPERS = (DPRR, LPGNN, HETERO_RR, GRAPH_PUB, DPAR, BASELINES, *NEWER)
