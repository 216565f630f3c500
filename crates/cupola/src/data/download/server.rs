//! A tiny HTTP server on the loopback address, for the tests of the download.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// How the server answers a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reply {
    /// As asked, ranges included.
    Proper,
    /// Announces everything that was asked for, and closes after so many bytes.
    Cut(usize),
    /// Sends the whole file whatever range was asked for.
    Whole,
    /// Refuses any range.
    NoRange,
    /// Sends a status and no file.
    Status(&'static str),
}

pub(super) struct Server {
    pub(super) url: String,
    /// The `Range` header of each request, in order.
    ranges: Arc<Mutex<Vec<Option<String>>>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves `content`, one request by each of `replies`, then no more.
    pub(super) fn start(content: Vec<u8>, replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/file", listener.local_addr().unwrap());
        let ranges = Arc::new(Mutex::new(Vec::new()));
        let seen = ranges.clone();
        let thread = std::thread::spawn(move || {
            for reply in replies {
                let (stream, _) = listener.accept().unwrap();
                let range = read_range(&stream);
                seen.lock().unwrap().push(range.clone());
                // The client may hang up first; what it made of that is what the test looks at.
                let _ = answer(&stream, &content, range.as_deref(), reply);
            }
        });
        Self { url, ranges, thread: Some(thread) }
    }

    /// Waits until every reply was given, and returns the ranges that were asked for.
    pub(super) fn finish(mut self) -> Vec<Option<String>> {
        self.thread.take().unwrap().join().unwrap();
        self.ranges.lock().unwrap().clone()
    }
}

fn read_range(stream: &TcpStream) -> Option<String> {
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    let mut range = None;
    for line in lines.take_while(|line| !line.is_empty()) {
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("range")
        {
            range = Some(value.trim().to_owned());
        }
    }
    range
}

fn answer(
    mut stream: &TcpStream,
    content: &[u8],
    range: Option<&str>,
    reply: Reply,
) -> std::io::Result<()> {
    let total = content.len();
    let asked = range
        .and_then(|range| range.strip_prefix("bytes="))
        .and_then(|range| range.strip_suffix('-'))
        .map(|start| start.parse::<usize>().unwrap());
    let (status, start, most) = match (reply, asked) {
        (Reply::Status(status), _) => (status, total, 0),
        (Reply::NoRange, Some(_)) => ("416 Range Not Satisfiable", total, 0),
        (Reply::Cut(most), Some(start)) => ("206 Partial Content", start, most),
        (Reply::Cut(most), None) => ("200 OK", 0, most),
        (Reply::Proper, Some(start)) => ("206 Partial Content", start, total),
        (Reply::Proper | Reply::Whole | Reply::NoRange, _) => ("200 OK", 0, total),
    };
    let body = &content[start..];
    let mut head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n", body.len());
    if status.starts_with("206") {
        head += &format!("Content-Range: bytes {start}-{}/{total}\r\n", total - 1);
    }
    head += "Connection: close\r\n\r\n";
    stream.write_all(head.as_bytes())?;
    stream.write_all(&body[..body.len().min(most)])
}
