use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::data::{DataLoader, Dataset, Error, Result, digits_sized};

/// Gives each index itself, and counts; index `bad` fails and index `worse` panics.
#[derive(Clone)]
struct Indices {
    len: usize,
    bad: Option<usize>,
    worse: Option<usize>,
    asked: Arc<AtomicUsize>,
}

impl Indices {
    fn new(len: usize) -> Self {
        Self { len, bad: None, worse: None, asked: Arc::new(AtomicUsize::new(0)) }
    }
}

impl Dataset for Indices {
    type Sample = usize;

    fn len(&self) -> usize {
        self.len
    }

    fn get(&self, index: usize) -> Result<usize> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        if self.bad == Some(index) {
            return Err(Error::user("no such luck"));
        }
        assert!(self.worse != Some(index), "worse luck");
        // The later of two batches is often ready first.
        if index.is_multiple_of(7) {
            std::thread::sleep(Duration::from_micros(200));
        }
        Ok(index)
    }
}

fn loader(dataset: Indices, batch_size: usize, workers: usize) -> DataLoader<Vec<usize>> {
    let builder = DataLoader::builder(dataset).batch_size(batch_size).shuffle(11).workers(workers);
    builder.collate(Ok).build().unwrap()
}

fn batches(loader: &DataLoader<Vec<usize>>, epoch: u64) -> Vec<Vec<usize>> {
    loader.epoch(epoch).map(Result::unwrap).collect()
}

#[test]
fn the_order_is_the_same_for_any_number_of_workers() {
    let expected = batches(&loader(Indices::new(103), 8, 0), 3);
    assert_eq!(expected.len(), 13);
    assert_eq!(expected[12].len(), 7);
    for workers in [1, 2, 4] {
        assert_eq!(batches(&loader(Indices::new(103), 8, workers), 3), expected);
    }
}

#[test]
fn the_order_is_fixed_by_seed_and_epoch() {
    // Written down, so that a changed generator shows: a checkpoint's epoch must not change.
    let order = |seed, epoch| {
        let builder = DataLoader::builder(Indices::new(10)).batch_size(10).shuffle(seed);
        builder.collate(Ok).build().unwrap().epoch(epoch).next().unwrap().unwrap()
    };
    assert_eq!(order(11, 0), [4, 3, 7, 2, 5, 8, 0, 1, 6, 9]);
    assert_eq!(order(11, 1), [4, 6, 5, 7, 0, 9, 2, 3, 1, 8]);
    assert_ne!(order(12, 0), order(11, 0));
}

#[test]
fn an_epoch_has_every_sample_once() {
    let loader = loader(Indices::new(50), 8, 2);
    let mut seen = batches(&loader, 0).concat();
    assert_ne!(seen, (0..50).collect::<Vec<_>>());
    seen.sort_unstable();
    assert_eq!(seen, (0..50).collect::<Vec<_>>());
}

#[test]
fn without_a_seed_the_order_is_the_data_sets() {
    let builder = DataLoader::builder(Indices::new(5)).batch_size(2).collate(Ok);
    assert_eq!(batches(&builder.build().unwrap(), 4), [vec![0, 1], vec![2, 3], vec![4]]);
}

#[test]
fn drop_last_leaves_out_the_short_batch() {
    for (len, count) in [(23, 2), (30, 3), (9, 0)] {
        let builder = DataLoader::builder(Indices::new(len)).batch_size(10).drop_last(true);
        let loader = builder.workers(2).collate(Ok).build().unwrap();
        assert_eq!((loader.len(), loader.epoch(0).len()), (count, count));
        assert!(batches(&loader, 0).iter().all(|batch| batch.len() == 10));
        assert_eq!(batches(&loader, 0).len(), count);
    }
}

#[test]
fn an_epoch_goes_on_where_it_was_left() {
    for workers in [0, 3] {
        let loader = loader(Indices::new(40), 6, workers);
        let rest: Vec<_> = loader.epoch_from(2, 4).map(Result::unwrap).collect();
        assert_eq!(rest, batches(&loader, 2)[4..]);
        assert_eq!(loader.epoch_from(2, 99).count(), 0);
    }
}

#[test]
fn a_failing_sample_is_named_and_the_rest_comes() {
    for workers in [0, 2] {
        let dataset = Indices { bad: Some(17), worse: Some(33), ..Indices::new(40) };
        let builder = DataLoader::builder(dataset).batch_size(4).workers(workers);
        let results: Vec<_> = builder.collate(Ok).build().unwrap().epoch(0).collect();
        let text = |batch: usize| results[batch].as_ref().unwrap_err().to_string();
        assert_eq!(text(4), "sample 17: no such luck");
        assert_eq!(text(8), "sample 33: panicked: worse luck");
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 8);
    }
}

#[test]
fn a_failing_collate_names_the_batch() {
    let builder = DataLoader::builder(Indices::new(4)).batch_size(2).workers(1);
    let collate = |samples: Vec<usize>| match samples[0] {
        0 => Err(Error::user("does not fit")),
        _ => panic!("does not fit at all"),
    };
    let loader = builder.collate::<(), _>(collate).build().unwrap();
    let texts: Vec<_> = loader.epoch(0).map(|batch| batch.unwrap_err().to_string()).collect();
    let expected = [
        "batch of samples [0, 1]: does not fit",
        "batch of samples [2, 3]: panicked: does not fit at all",
    ];
    assert_eq!(texts, expected);
}

#[test]
fn no_more_is_read_ahead_than_prefetch() {
    let dataset = Indices::new(100);
    let asked = dataset.asked.clone();
    let builder = DataLoader::builder(dataset).batch_size(5).workers(2).prefetch(3);
    let loader = builder.collate(Ok).build().unwrap();
    let mut epoch = loader.epoch(0);
    let settles_at = |samples: usize| {
        let start = Instant::now();
        while asked.load(Ordering::SeqCst) < samples && start.elapsed().as_secs() < 20 {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(asked.load(Ordering::SeqCst), samples);
    };
    settles_at(15);
    epoch.next().unwrap().unwrap();
    settles_at(20);
}

#[test]
fn dropping_an_epoch_ends_its_threads() {
    let dataset = Indices::new(1000);
    let asked = dataset.asked.clone();
    let alive = Arc::new(Mutex::new(()));
    let held = Arc::downgrade(&alive);
    let loader = {
        let collate = move |samples: Vec<usize>| {
            drop(alive.lock());
            Ok(samples)
        };
        let builder = DataLoader::builder(dataset).batch_size(1).workers(4).prefetch(8);
        builder.collate(collate).build().unwrap()
    };
    let mut epoch = loader.epoch(0);
    epoch.next().unwrap().unwrap();
    drop(epoch);
    let after = asked.load(Ordering::SeqCst);
    assert!(after < 20, "{after} samples were read");
    drop(loader);
    // Each thread holds what the loader captured until it has ended.
    assert!(held.upgrade().is_none());
    assert_eq!(asked.load(Ordering::SeqCst), after);
}

#[test]
fn senseless_options_are_errors() {
    let text = |result: Result<DataLoader<Vec<usize>>>| result.unwrap_err().to_string();
    let builder = || DataLoader::builder(Indices::new(3)).collate(Ok);
    assert_eq!(text(builder().batch_size(0).build()), "DataLoader: batch_size is 0, not 1 or more");
    assert_eq!(text(builder().prefetch(0).build()), "DataLoader: prefetch is 0, not 1 or more");
}

#[test]
fn a_huge_batch_is_the_whole_data_set() {
    let builder = DataLoader::builder(Indices::new(3)).batch_size(usize::MAX).collate(Ok);
    assert_eq!(batches(&builder.build().unwrap(), 0), [vec![0, 1, 2]]);
    let empty = DataLoader::builder(Indices::new(0)).workers(2).collate(Ok).build().unwrap();
    assert!(empty.is_empty() && empty.epoch(0).next().is_none());
}

#[test]
fn images_come_in_batches() {
    let (train, _) = digits_sized(4, 50, 0);
    let scaled = train.clone().normalized(train.normalization()).unwrap();
    let subset = scaled.clone().subset([7, 3, 7]).unwrap();
    let loader = DataLoader::builder(subset).batch_size(8).workers(1).build().unwrap();
    let (images, labels) = loader.epoch(0).next().unwrap().unwrap();
    assert_eq!(images.shape()[..], [3, 28, 28, 1]);
    assert_eq!(labels.to_vec::<i32>().unwrap(), [7, 3, 7].map(|i| train.labels()[i]));

    // Sample by sample, collated by type, they are the same.
    let one_by_one = scaled.map(Ok).subset([7, 3, 7]).unwrap();
    let loader = DataLoader::builder(one_by_one).batch_size(8).build().unwrap();
    let (slow_images, slow_labels) = loader.epoch(0).next().unwrap().unwrap();
    assert_eq!(slow_images.shape(), images.shape());
    assert_eq!(slow_images.to_vec::<f32>().unwrap(), images.to_vec::<f32>().unwrap());
    assert_eq!(slow_labels.to_vec::<i32>().unwrap(), labels.to_vec::<i32>().unwrap());
}
