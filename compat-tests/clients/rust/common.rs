//! What the Rust clients' programs share: the cases by name, and how they are reported (see ../CASES.md).
use std::any::Any;
use std::error::Error;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

pub const PARTITIONS: i32 = 2;
pub const RECORDS: usize = 300;
const CASE_LIMIT: Duration = Duration::from_secs(90);

/// check!(holds, "what", is, "wrong {}", otherwise) ends a case.
#[macro_export]
macro_rules! check {
    ($holds:expr, $($why:tt)+) => {
        if !$holds {
            return Err(format!($($why)+).into());
        }
    };
}

pub fn key(i: usize) -> Option<String> {
    (i % 7 != 0).then(|| format!("key {i}"))
}

pub fn value(i: usize) -> Option<String> {
    (i % 11 != 0 || i % 7 == 0).then(|| format!("value {i} {}", "v".repeat(i % 200)))
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// now_ms is the time of day in milliseconds since 1970, as a record has it.
pub fn now_ms() -> i64 {
    since_1970().as_millis() as i64
}

/// name is of a topic, group or id that nothing else has.
pub fn name(what: &str) -> String {
    format!("rs-{what}-{}", since_1970().as_nanos() % 1_000_000_000_000)
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is before 1970")
}

pub fn address() -> String {
    std::env::args().nth(1).expect("the broker's address")
}

/// Read is a record as it was read.
#[derive(Debug)]
pub struct Read {
    pub partition: i32,
    pub offset: i64,
    pub key: Option<String>,
    pub value: Option<String>,
    pub headers: Vec<(String, Option<String>)>,
}

/// headers are those of record i; null is the value of the second one, which some clients cannot leave out.
pub fn headers(i: usize, null: Option<&str>) -> Vec<(String, Option<String>)> {
    vec![("n".to_string(), Some(i.to_string())), ("null".to_string(), null.map(str::to_string))]
}

/// check_records compares records, in the order in which they came, with those that were sent.
pub fn check_records(got: &[Read], null_header: Option<&str>) -> Result<()> {
    check!(got.len() == RECORDS, "{} records came, not {RECORDS}", got.len());
    for p in 0..PARTITIONS {
        for (n, r) in got.iter().filter(|r| r.partition == p).enumerate() {
            let i = n * PARTITIONS as usize + p as usize;
            let same = r.offset == n as i64 && r.key == key(i) && r.value == value(i);
            check!(same && r.headers == headers(i, null_header), "record {i} came as {r:?}");
        }
    }
    Ok(())
}

/// main runs the cases that the program was started with, each in a thread that is left behind when it hangs.
pub fn main(run: fn(&str) -> Result<()>) {
    for case in std::env::args().skip(2) {
        let start = Instant::now();
        let outcome = limited(case.clone(), run);
        let why = outcome.as_ref().err().map(ToString::to_string).unwrap_or_default();
        let seconds = start.elapsed().as_millis() as f64 / 1000.0;
        println!("{}", serde_json::json!({"case": case, "ok": outcome.is_ok(), "why": why, "seconds": seconds}));
    }
    std::process::exit(0);
}

fn limited(case: String, run: fn(&str) -> Result<()>) -> Result<()> {
    let (tell, told) = mpsc::channel();
    let thread = thread::spawn(move || {
        let _ = tell.send(run(&case)); // nobody listens any more to one that comes late
    });
    match told.recv_timeout(CASE_LIMIT) {
        Ok(outcome) => outcome,
        Err(RecvTimeoutError::Timeout) => Err(format!("the case is not done after {} s", CASE_LIMIT.as_secs()).into()),
        Err(RecvTimeoutError::Disconnected) => Err(panicked(thread.join().err()).into()),
    }
}

fn panicked(what: Option<Box<dyn Any + Send>>) -> String {
    let said = what.as_ref().and_then(|w| w.downcast_ref::<String>().map(String::as_str).or(w.downcast_ref::<&str>().copied()));
    format!("the case panicked: {}", said.unwrap_or("without a word"))
}
