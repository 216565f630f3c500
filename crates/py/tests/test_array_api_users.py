"""SciPy and scikit-learn on Cupola's arrays, beside the same calls on NumPy's."""

import importlib

import numpy as np
import pytest

import cupola.array_api as xp
import cupola.core as mx

scipy = pytest.importorskip("scipy", reason="SciPy is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(2, 20, 3))
V, W = X[:, 0], Y[:, 0]
POSITIVE = np.abs(X) + 0.5
CHANCES = RNG.random(20)


def compare(run, tolerance, own=True):
    """Compares what `run` gives of Cupola's arrays and of NumPy's; it takes what makes them."""
    theirs, ours = run(np.asarray), run(lambda x: xp.asarray(x, copy=True))
    as_list = lambda value: list(value) if isinstance(value, (tuple, list)) else [value]  # noqa: E731
    for a, b in zip(as_list(ours), as_list(theirs), strict=True):
        assert not own or isinstance(a, mx.array), f"{type(a)} came"
        assert np.shape(a) == np.shape(b)
        assert np.allclose(a, b, tolerance, tolerance, equal_nan=True), f"{a}, not {b}"


SCIPY = {
    "stats": """skew(x) kurtosis(x) zscore(x) moment(x,3) variation(x) sem(x) gmean(positive)
        hmean(positive) gstd(positive) iqr(x) entropy(positive) tmean(x) tvar(x) kstat(v,3) lmoment(v)
        quantile(x,0.3) rankdata(x) median_abs_deviation(x) trim_mean(x,0.1) circmean(x) circvar(x)
        ttest_1samp(x,0.1).statistic ttest_ind(x,y).pvalue ttest_rel(x,y).pvalue pearsonr(v,w).statistic
        pearsonr(v,w).pvalue normaltest(x).pvalue jarque_bera(x).pvalue bartlett(v,w).statistic
        levene(v,w).statistic mannwhitneyu(v,w).pvalue wilcoxon(v,w).pvalue kruskal(v,w).pvalue
        f_oneway(x,y).pvalue boxcox_llf(0.5,positive) yeojohnson_llf(0.5,v) false_discovery_control(p)
        directional_stats(x).mean_direction alexandergovern(v,w).pvalue""",
    "special": """erf(x) erfc(x) expit(x) logit(p) gammaln(positive) digamma(positive) ndtr(x) ndtri(p)
        log_ndtr(x) i0(x) i1e(x) entr(p) xlogy(p,positive[:,0]) rel_entr(p,positive[:,0])
        gammainc(positive,positive) betainc(positive[:,0],positive[:,1],p) logsumexp(x,axis=0)
        softmax(x,axis=1) log_softmax(x,axis=1)""",
    "signal": """convolve(v,w) correlate(v,w) fftconvolve(v,w) oaconvolve(v,w) detrend(v) hilbert(v)
        resample(v,10) upfirdn(v[:2],w) savgol_filter(v,5,2) lfilter(v[:2],v[:1],w)
        medfilt(v,3) wiener(v,3) envelope(v)""",
    "fft": "fft(x) ifft(x) rfft(x) fft2(x) fftn(x) rfftn(x) hfft(x) ihfft(x) dct(x) dst(x) fftshift(x)",
    "integrate": "trapezoid(v) cumulative_trapezoid(v) cumulative_simpson(v)",
    "cluster.vq": "whiten(x) vq(x,y[:3])",
    "ndimage": "gaussian_filter(x,1.0) uniform_filter(x) sobel(x) median_filter(x,3) shift(x,1.0)",
    "optimize": "rosen(x) rosen_der(v)",
}  # fmt: skip


@pytest.mark.parametrize(
    "module, call", [(module, call) for module, calls in SCIPY.items() for call in calls.split()]
)
def test_scipy(module, call):
    home = pytest.importorskip(f"scipy.{module}")

    def run(make):
        arrays = {"x": X, "y": Y, "v": V, "w": W, "positive": POSITIVE, "p": CHANCES}
        return eval(f"home.{call}", {"home": home} | {n: make(a) for n, a in arrays.items()})

    compare(run, 1e-4)


FEATURES = RNG.normal(size=(200, 6)).astype(np.float32)
TARGET = FEATURES @ np.arange(6, dtype=np.float32)
CLASSES = (TARGET + RNG.normal(size=200) > 0).astype(np.int64)
GUESSES, SCORES = np.roll(CLASSES, 3), RNG.random(200)

ESTIMATORS = """preprocessing.StandardScaler().fit(x).transform(x)
preprocessing.MinMaxScaler().fit(x).transform(x)
preprocessing.MaxAbsScaler().fit(x).transform(x)
preprocessing.Normalizer().fit(x).transform(x)
preprocessing.LabelEncoder().fit_transform(c)
preprocessing.LabelBinarizer().fit_transform(c)
PCA(3, svd_solver="full").fit(x).transform(x)
PCA(3, svd_solver="covariance_eigh").fit(x).transform(x)
LDA().fit(x, c).predict(x)
LDA().fit(x, c).predict_proba(x)
pipeline.make_pipeline(preprocessing.StandardScaler(), LDA()).fit(x, c).predict(x)
model_selection.cross_val_predict(LDA(), x, c)
model_selection.train_test_split(x, random_state=0)[0]
linear_model.Ridge(solver="svd").fit(x, t).predict(x)
linear_model.RidgeClassifier(solver="svd").fit(x, c).predict(x)
linear_model.LogisticRegression(solver="lbfgs").fit(x, c).predict_proba(x)
naive_bayes.GaussianNB().fit(x, c).predict(x)
metrics.confusion_matrix(c, g)
metrics.pairwise.cosine_similarity(x)
metrics.pairwise.euclidean_distances(x[:9, :], x[9:20, :])
metrics.pairwise.rbf_kernel(x[:9, :], x[9:20, :])""".splitlines()

METRICS = """accuracy_score(c,g) zero_one_loss(c,g) f1_score(c,g) precision_score(c,g) recall_score(c,g)
jaccard_score(c,g) hamming_loss(c,g) balanced_accuracy_score(c,g) average_precision_score(c,s)
brier_score_loss(c,s) log_loss(c,s) mean_squared_error(t,s) mean_absolute_error(t,s) r2_score(t,s)
explained_variance_score(t,s) max_error(t,s) median_absolute_error(t,s) d2_absolute_error_score(t,s)
mean_pinball_loss(t,s)""".split()


@pytest.mark.parametrize("call", [*ESTIMATORS, *(f"metrics.{call}" for call in METRICS)])
def test_scikit_learn(call):
    sklearn = pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    modules = {
        name: importlib.import_module(f"sklearn.{name}")
        for name in """decomposition discriminant_analysis linear_model metrics model_selection
        naive_bayes pipeline preprocessing""".split()
    }
    modules["LDA"] = modules["discriminant_analysis"].LinearDiscriminantAnalysis
    modules["PCA"] = modules["decomposition"].PCA

    def run(make):
        arrays = {"x": FEATURES, "c": CLASSES, "g": GUESSES, "s": SCORES, "t": TARGET}
        names = {name: make(array) for name, array in arrays.items()}
        with sklearn.config_context(array_api_dispatch=True):
            return eval(call, modules | names)

    # Scores are Python's numbers in any case.
    compare(run, 2e-3, own=call in ESTIMATORS)
