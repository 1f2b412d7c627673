"""The page in reports/libraries/ for each violation, and the libraries left out."""

WRITTEN = {
    "mean_without_missing": "diffprivlib_nan",
    "variance_without_missing": "diffprivlib_nan",
    "deviation_without_missing": "diffprivlib_nan",
    "sum_without_missing": "diffprivlib_nan",
    "weighted_histogram": "diffprivlib_weights",
    "quantile_of_ties": "diffprivlib_quantile",
    "rounded_sum": "diffprivlib_rounding",
    "linear": "diffprivlib_linear_regression",
    "logistic_of_large_norm": "diffprivlib_logistic_regression",
    "logistic_of_one_class": "diffprivlib_logistic_regression",
    "naive_bayes_added": "diffprivlib_naive_bayes",
    "naive_bayes_replaced": "diffprivlib_naive_bayes",
    "forest": "diffprivlib_random_forest",
    "forest_replaced": "diffprivlib_random_forest",
    "inertia": "diffprivlib_kmeans",
    "diffprivlib_laplace": "diffprivlib_floating_point",
    "diffprivlib_truncated": "diffprivlib_floating_point",
    "diffprivlib_bounded": "diffprivlib_floating_point",
    "diffprivlib_staircase": "diffprivlib_floating_point",
    "diffprivlib_gaussian": "diffprivlib_floating_point",
    "pydp_gaussian": "pydp_gaussian",
    "exponential": "pipeline_dp_exponential",
}
"""Pages by the name of the audit."""
LEFT_OUT = {
    "smartnoise-synth 1.0.8": "needs opacus below 0.15; the pinned one is 1.6.0",
    "smartnoise-sql 1.0.10": "needs pandas below 3; the pinned one is 3.1.1",
    "tmlt-core 0.20.0": "needs numpy below 2, and auditdp numpy 2",
    "tensorflow-privacy 0.9.0": "pip resolves to 0.7.3, which brings tensorflow-probability and data sets; not installed",
    "autodp 0.2.3.1": "installs; its accountants were not compared",
    "dpmm 0.1.9, mbi 2.0.0": "dpmm needs networkx below 3; mbi, which infers after noise was added, brings jax",
    "Opacus 1.6.0, training": "its accountants are above; a training loop is too slow a mechanism for this set",
}
"""Why there is no audit of a library."""
