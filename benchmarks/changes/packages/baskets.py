"""Revenue by product, of customers' baskets joined with a price list."""

PRICES = {"bread": 3, "cheese": 12, "wine": 20}
CAP = 30


def spent(basket):
    """Return what a customer counts by product, CAP in all at most; what has no price is left out."""
    paid = {product: basket.count(product) * PRICES[product] for product in PRICES}
    factor = min(1.0, CAP / max(sum(paid.values()), 1))
    return {product: factor * amount for product, amount in paid.items()}


def revenue(baskets, rng, epsilon=1.0):
    """Return revenues and the number of customers, ε-DP together: 0.8 and 0.2 of ε."""
    capped = [spent(basket) for basket in baskets]
    found = {"customers": len(baskets) + rng.laplace(scale=1 / (0.2 * epsilon))}
    for product in PRICES:
        total = sum(each[product] for each in capped)
        found[product] = total + rng.laplace(scale=CAP / (0.8 * epsilon))
    return found
