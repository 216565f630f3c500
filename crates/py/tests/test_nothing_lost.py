"""An evaluation that finds an index outside its axis leaves everything as it was, on every device."""

import pytest
from conftest import cc

DEVICES = [name for name in ("cpu", "wgpu", "cuda") if cc.is_available(getattr(cc, name))]


@pytest.fixture(params=DEVICES, autouse=True)
def device(request):
    cc.set_default_device(getattr(cc, request.param))


def computed(*numbers):
    """Indices that the host has not seen."""
    return cc.array([n - 1 for n in numbers]) + cc.ones(len(numbers), dtype=cc.int32)


@pytest.mark.parametrize("indices", [cc.array, lambda numbers: computed(*numbers)])
def test_what_is_read_stays_readable(indices):
    z = cc.ones(3) * 2
    y = cc.take(z, indices([9]))
    for _ in range(2):
        with pytest.raises(IndexError):
            y.tolist()
    assert z.tolist() == [2, 2, 2]


@pytest.mark.parametrize("indices", [cc.array, lambda numbers: computed(*numbers)])
def test_a_step_keeps_its_weights_and_moments(indices):
    def step(weights, moments, at):
        moments = 0.5 * moments + cc.take(weights, at, axis=0).sum()
        return weights - 0.25 * moments, moments

    kept = [cc.ones((4, 3)), cc.zeros((4, 3))]
    cc.eval(kept)
    for numbers in ([0, 1], [3, 2]):
        kept = list(step(*kept, indices(numbers)))
        cc.eval(kept)
    good = [x.tolist() for x in kept]
    wrong = step(*kept, indices([1, 4]))
    with pytest.raises(IndexError):
        cc.eval(wrong)
    del wrong
    assert [x.tolist() for x in kept] == good
    kept = list(step(*kept, indices([1, 2])))
    cc.eval(kept)


def test_random_numbers_go_on():
    cc.random.seed(7)
    before = cc.random.normal((3,)).tolist()
    with pytest.raises(IndexError):
        cc.take(cc.random.normal((3,)), cc.random.randint(5, 9, (2,))).tolist()
    after = cc.random.normal((3,)).tolist()
    assert len(after) == 3 and after != before


def test_random_numbers_go_on_after_a_compiled_step():
    cc.random.seed(7)
    weights = cc.ones((6, 2))

    def step(at):
        return (cc.take(weights, at, axis=0) + cc.random.normal((2,))).sum()

    compiled = cc.compile(step, inputs=cc.random.state, outputs=cc.random.state)
    for run in (compiled, cc.compile(lambda at: compiled(at) * 2)):
        run(computed(1)).item()
        before = cc.random.state[0].tolist()
        wrong = run(computed(9))
        with pytest.raises(IndexError):
            wrong.item()
        assert cc.random.state[0].tolist() != before
        assert len(cc.random.normal((3,)).tolist()) == 3
        run(computed(2)).item()


def test_asynchronous_work_gives_its_error_to_who_reads():
    z = cc.arange(5) * 3
    y = cc.take(z, computed(7))
    cc.async_eval(y, z)
    for _ in range(2):
        with pytest.raises(IndexError):
            y.item()
    assert z.tolist() == [0, 3, 6, 9, 12]


@pytest.mark.parametrize("indices", [cc.array, lambda numbers: computed(*numbers)])
@pytest.mark.parametrize(
    "work",
    [
        lambda at: cc.take(cc.zeros((3, 0)), at, axis=0),
        lambda at: cc.zeros((3, 0)).at[at].add(cc.zeros((2, 0))),
        lambda at: cc.put_along_axis(cc.zeros((0,)), at, cc.zeros((2,)), axis=0),
    ],
    ids=["take", "scatter", "put_along_axis"],
)
def test_an_index_is_wrong_where_nothing_is_read_at_it(work, indices):
    with pytest.raises(IndexError):
        work(indices([1, 9])).tolist()
