use std::cell::RefCell;
use std::path::Path;

use super::catalogue::Member;
use super::server::{Reply, Server};
use super::*;

fn content() -> Vec<u8> {
    (0..300_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

fn sum(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("content");
    std::fs::write(&path, bytes).unwrap();
    catalogue::md5(&path).unwrap()
}

fn remote(bytes: &[u8], urls: &[&str]) -> Remote {
    Remote {
        name: "file.bin".to_owned(),
        urls: urls.iter().map(|&url| url.to_owned()).collect(),
        bytes: bytes.len() as u64,
        md5: sum(bytes),
        members: Vec::new(),
    }
}

/// A downloader that goes to the loopback address whatever proxy the environment names.
fn downloader<'a>() -> Downloader<'a> {
    let config = ureq::Agent::config_builder().http_status_as_error(false).proxy(None);
    Downloader { agent: config.build().into(), pause: Duration::ZERO, ..Downloader::new() }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Fetches `content` from a server that replies so; the ranges that it was asked for.
fn fetch_by(replies: Vec<Reply>, before: Option<&[u8]>) -> (Result<()>, Vec<Option<String>>) {
    let folder = tempfile::tempdir().unwrap();
    if let Some(before) = before {
        std::fs::write(folder.path().join("file.bin.part"), before).unwrap();
    }
    let server = Server::start(content(), replies);
    let outcome = downloader().fetch_file(&remote(&content(), &[&server.url]), folder.path());
    if outcome.is_ok() {
        assert_eq!(std::fs::read(folder.path().join("file.bin")).unwrap(), content());
        assert_eq!(names(folder.path()), ["file.bin"]);
    } else {
        assert!(!folder.path().join("file.bin").exists());
    }
    (outcome, server.finish())
}

#[test]
fn md5_is_that_of_the_standard() {
    assert_eq!(sum(b""), "d41d8cd98f00b204e9800998ecf8427e");
    assert_eq!(sum(b"message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
}

#[test]
fn fetches_a_whole_file() {
    let (outcome, ranges) = fetch_by(vec![Reply::Proper], None);
    outcome.unwrap();
    assert_eq!(ranges, [None]);
}

#[test]
fn resumes_after_a_cut_connection() {
    let (outcome, ranges) =
        fetch_by(vec![Reply::Cut(100_000), Reply::Cut(50_000), Reply::Proper], None);
    outcome.unwrap();
    let expected = [None, Some("bytes=100000-".to_owned()), Some("bytes=150000-".to_owned())];
    assert_eq!(ranges, expected);
}

#[test]
fn resumes_what_an_earlier_try_left() {
    let (outcome, ranges) = fetch_by(vec![Reply::Proper], Some(&content()[..1234]));
    outcome.unwrap();
    assert_eq!(ranges, [Some("bytes=1234-".to_owned())]);
}

#[test]
fn starts_again_where_ranges_are_ignored_or_refused() {
    let (outcome, ranges) = fetch_by(vec![Reply::Cut(1000), Reply::Whole], None);
    outcome.unwrap();
    assert_eq!(ranges, [None, Some("bytes=1000-".to_owned())]);

    let (outcome, ranges) = fetch_by(vec![Reply::NoRange, Reply::NoRange], Some(b"left"));
    outcome.unwrap();
    assert_eq!(ranges, [Some("bytes=4-".to_owned()), None]);
}

#[test]
fn starts_again_when_the_left_part_was_wrong() {
    let (outcome, ranges) = fetch_by(vec![Reply::Proper, Reply::Proper], Some(&[0xEE; 5000]));
    outcome.unwrap();
    assert_eq!(ranges, [Some("bytes=5000-".to_owned()), None]);

    let (outcome, ranges) = fetch_by(vec![Reply::Proper], Some(&[0; 300_001]));
    outcome.unwrap();
    assert_eq!(ranges, [None]);
}

#[test]
fn a_mirror_that_brings_nothing_is_given_up() {
    let (outcome, ranges) = fetch_by(vec![Reply::Cut(0); 3], None);
    let text = outcome.unwrap_err().to_string();
    assert!(text.contains("after 0 of 300000 bytes"), "{text}");
    assert_eq!(ranges.len(), 3);
}

#[test]
fn a_wrong_checksum_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut other = content();
    other[77] ^= 1;
    let server = Server::start(other, vec![Reply::Proper]);
    let remote = remote(&content(), &[&server.url]);
    let text = downloader().fetch_file(&remote, folder.path()).unwrap_err().to_string();
    assert!(text.starts_with("file.bin: download failed: http://127.0.0.1:"), "{text}");
    assert!(text.contains(&format!("where {} is expected", remote.md5)), "{text}");
    assert_eq!(names(folder.path()), Vec::<String>::new());
    server.finish();
}

#[test]
fn a_wrong_length_is_refused_before_it_is_fetched() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(content(), vec![Reply::Proper]);
    let remote = remote(&content()[..1000], &[&server.url]);
    let text = downloader().fetch_file(&remote, folder.path()).unwrap_err().to_string();
    assert!(text.contains("has 300000 bytes, where 1000 are expected"), "{text}");
    server.finish();
}

#[test]
fn the_next_mirror_serves_what_the_first_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let lacking = Server::start(content(), vec![Reply::Status("404 Not Found")]);
    let serving = Server::start(content(), vec![Reply::Proper]);
    let remote = remote(&content(), &[&lacking.url, &serving.url]);
    downloader().fetch_file(&remote, folder.path()).unwrap();
    assert_eq!(std::fs::read(folder.path().join("file.bin")).unwrap(), content());
    assert_eq!(lacking.finish().len() + serving.finish().len(), 2);
}

#[test]
fn every_mirror_that_fails_is_named() {
    let (outcome, ranges) = fetch_by(vec![Reply::Status("404 Not Found")], None);
    let text = outcome.unwrap_err().to_string();
    assert!(text.contains("/file: answers 404 Not Found"), "{text}");
    assert_eq!(ranges, [None]);
}

#[test]
fn reports_progress_and_leaves_alone_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(content(), vec![Reply::Proper]);
    let remote = remote(&content(), &[&server.url]);
    let last = RefCell::new((0, 0));
    let present = RefCell::new(0);
    let mut downloader = downloader().progress(|step| match step {
        Progress::Received { bytes, total, .. } => {
            assert!(bytes > last.borrow().0);
            *last.borrow_mut() = (bytes, total);
        }
        Progress::Present { file } => {
            assert_eq!(file, "file.bin");
            *present.borrow_mut() += 1;
        }
        _ => {}
    });
    downloader.fetch_file(&remote, folder.path()).unwrap();
    assert_eq!((*last.borrow(), *present.borrow()), ((300_000, 300_000), 0));
    downloader.fetch_file(&remote, folder.path()).unwrap();
    assert_eq!(*present.borrow(), 1);
    assert_eq!(server.finish().len(), 1);
}

#[test]
fn a_stopped_download_is_kept_and_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(content(), vec![Reply::Proper, Reply::Proper]);
    let remote = remote(&content(), &[&server.url]);
    let flag = AtomicBool::new(false);
    let raise = |step: Progress<'_>| {
        if matches!(step, Progress::Received { .. }) {
            flag.store(true, Ordering::Relaxed);
        }
    };
    let outcome = downloader().stop(&flag).progress(raise).fetch_file(&remote, folder.path());
    assert!(matches!(outcome, Err(Error::Stopped { .. })), "{outcome:?}");
    let kept = std::fs::metadata(folder.path().join("file.bin.part")).unwrap().len();
    assert!((1..300_000).contains(&kept), "{kept}");
    downloader().fetch_file(&remote, folder.path()).unwrap();
    assert_eq!(std::fs::read(folder.path().join("file.bin")).unwrap(), content());
    assert_eq!(server.finish()[1], Some(format!("bytes={kept}-")));
}

/// A `.tar.gz` with these entries, whose names may be ones that `tar` would refuse to write.
fn pack(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut builder = tar::Builder::new(&mut gzip);
    for (path, bytes) in entries {
        let mut header = tar::Header::new_gnu();
        header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_size(bytes.len() as u64);
        header.set_cksum();
        builder.append(&header, *bytes).unwrap();
    }
    builder.finish().unwrap();
    drop(builder);
    gzip.finish().unwrap()
}

fn archive(packed: &[u8], url: &str) -> Remote {
    let member = |path: &str, bytes| Member { path: path.to_owned(), bytes };
    let members = vec![member("set/a.bin", 3), member("set/b.bin", 4)];
    Remote { members, ..remote(packed, &[url]) }
}

fn fetch_archive(packed: &[u8], folder: &Path) -> Result<()> {
    let server = Server::start(packed.to_vec(), vec![Reply::Proper]);
    let outcome = downloader().fetch_file(&archive(packed, &server.url), folder);
    assert_eq!(server.finish(), [None]);
    outcome
}

#[test]
fn an_archive_gives_its_members_and_nothing_else() {
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("inner");
    std::fs::create_dir(&folder).unwrap();
    let packed = pack(&[
        ("../escaped.bin", b"out"),
        ("set/../../a.bin", b"out"),
        ("set/readme.txt", b"text"),
        ("./set/b.bin", b"bbbb"),
        ("set/a.bin", b"aaa"),
    ]);
    fetch_archive(&packed, &folder).unwrap();
    assert_eq!(names(&folder), ["a.bin", "b.bin"]);
    assert_eq!(names(outer.path()), ["inner"]);
    assert_eq!(std::fs::read(folder.join("a.bin")).unwrap(), b"aaa");
    // What is unpacked is not fetched again: nobody listens at this address.
    downloader().fetch_file(&archive(&packed, "http://127.0.0.1:9/file"), &folder).unwrap();
}

#[test]
fn an_archive_that_lacks_a_member_says_which() {
    let folder = tempfile::tempdir().unwrap();
    let packed = pack(&[("set/a.bin", b"aaa")]);
    let text = fetch_archive(&packed, folder.path()).unwrap_err().to_string();
    assert!(text.ends_with("the archive lacks set/b.bin"), "{text}");

    let folder = tempfile::tempdir().unwrap();
    let packed = pack(&[("set/a.bin", b"aaaaa"), ("set/b.bin", b"bbbb")]);
    let text = fetch_archive(&packed, folder.path()).unwrap_err().to_string();
    assert!(text.contains("set/a.bin is no file of 3 bytes"), "{text}");
}

#[test]
fn a_raised_flag_keeps_a_download_from_starting() {
    let folder = tempfile::tempdir().unwrap();
    let flag = AtomicBool::new(true);
    let remote = remote(&content(), &["http://127.0.0.1:9/file"]);
    let outcome = downloader().stop(&flag).fetch_file(&remote, folder.path());
    assert!(matches!(outcome, Err(Error::Stopped { .. })), "{outcome:?}");
}

#[test]
fn https_addresses_are_asked_by_tls() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/file", listener.local_addr().unwrap());
    let first = std::thread::spawn(move || {
        let mut byte = [0];
        std::io::Read::read_exact(&mut listener.accept().unwrap().0, &mut byte).unwrap();
        byte[0]
    });
    let folder = tempfile::tempdir().unwrap();
    let outcome = downloader().fetch_file(&remote(&content(), &[&url]), folder.path());
    assert!(matches!(outcome, Err(Error::Download { .. })), "{outcome:?}");
    // The record type of a TLS handshake.
    assert_eq!(first.join().unwrap(), 0x16);
}

#[test]
fn the_catalogue_is_well_formed() {
    for set in Published::ALL {
        let files = catalogue::files(set);
        assert_eq!(files.len(), if files[0].members.is_empty() { 4 } else { 1 });
        for remote in files {
            assert_eq!(remote.md5.len(), 32);
            assert!(remote.md5.bytes().all(|b| b.is_ascii_hexdigit() && !b.is_ascii_uppercase()));
            assert!(remote.urls.iter().all(|url| url.ends_with(&remote.name)));
        }
    }
}
