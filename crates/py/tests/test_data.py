"""`cupola.data`: data sets, orders, workers, errors."""

import gc
import weakref

import pytest

import cupola.core as cc
from cupola.data import ArrayDataset, DataLoader, Dataset, collate, digits


class Squares(Dataset):
    def __len__(self):
        return 10

    def __getitem__(self, index):
        if index == 7 and getattr(self, "broken", False):
            raise KeyError("seven")
        return {"x": cc.array(float(index)), "y": index * index, "name": str(index)}


@pytest.mark.parametrize("workers", [0, 3])
def test_batches(workers):
    loader = DataLoader(Squares(), 4, workers=workers)
    batches = list(loader)
    assert len(loader) == len(batches) == 3
    assert batches[0]["x"].tolist() == [0, 1, 2, 3] and batches[2]["y"].tolist() == [64, 81]
    assert batches[1]["name"] == ["4", "5", "6", "7"]
    assert len(DataLoader(Squares(), 4, drop_last=True)) == 2
    for name, wrong in (("batch_size", dict(batch_size=-1)), ("workers", dict(workers=-1)), ("prefetch", dict(prefetch=-1))):
        with pytest.raises(ValueError, match=f"DataLoader: {name}: -1 must not be negative"):
            list(DataLoader(Squares(), **wrong))
    with pytest.raises(ValueError, match="digits: test: -1 must not be negative"):
        digits(0, 10, -1)


def test_orders():
    orders = [
        [b["y"].tolist() for b in DataLoader(Squares(), 3, shuffle=True, seed=s, workers=w).epoch(e)]
        for s, w, e in [(1, 0, 0), (1, 2, 0), (1, 0, 1), (2, 0, 0)]
    ]
    assert orders[0] == orders[1] != orders[2] and orders[0] != orders[3]
    assert sorted(sum(orders[0], [])) == [i * i for i in range(10)]
    loader = DataLoader(Squares(), 3, shuffle=True, seed=1)
    assert [[b["y"].tolist() for b in loader] for _ in range(2)] == [orders[0], orders[2]]


@pytest.mark.parametrize("workers", [0, 2])
def test_errors_and_early_ends(workers):
    broken = Squares()
    broken.broken = True
    with pytest.raises(KeyError, match="seven"):
        list(DataLoader(broken, 2, workers=workers))
    with pytest.raises(ValueError):
        DataLoader(Squares(), 0)
    for _ in range(5):
        epoch = iter(DataLoader(Squares(), 1, workers=workers))
        next(epoch)
        del epoch


def test_sets():
    train, test = digits(train=50, test=20)
    assert (len(train), len(test), len(train.classes)) == (50, 20, 10)
    images, labels = train.arrays()
    assert images.shape[0] == 50 and labels.shape == (50,)
    image, label = train[3]
    assert cc.array_equal(image, images[3]).item() and label == labels[3].item()
    batch = next(iter(DataLoader(train, 8)))
    assert batch[0].shape[0] == 8 and batch[1].shape == (8,)
    with pytest.raises(IndexError):
        train[50]
    rows = ArrayDataset(cc.arange(6).reshape(3, 2), cc.arange(3))
    assert collate([rows[0], rows[2]])[0].tolist() == [[0, 1], [4, 5]]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_set_that_holds_its_loader_is_collected(workers):
    watched = []
    for _ in range(3):
        owner = Squares()
        owner.loader = DataLoader(owner, 4, workers=workers)
        owner.epoch = iter(owner.loader)
        next(owner.epoch)
        owner.part = cc.ones(3).at[[owner]]
        next(iter(owner.loader))
        watched.append(weakref.ref(owner))
        del owner
    gc.collect()
    assert [one() for one in watched] == [None] * 3
