// Locks of the standard library, in a service that hangs or rests: scenes.rs hang|rest
use std::sync::{mpsc, Arc, Barrier, Mutex};
use std::thread::{self, Builder};

extern "C" {
    fn prctl(option: i32, name: *const u8) -> i32;
}

fn start(name: String, work: impl FnOnce() + Send + 'static) {
    Builder::new().name(name).spawn(work).unwrap();
}

// Two threads, each with the mutex that the other wants, and 20 behind one of them.
fn hang() {
    let locks = Arc::new([Mutex::new(0), Mutex::new(0)]);
    let held = Arc::new(Barrier::new(3));
    for (i, name) in ["indexer", "flusher"].iter().enumerate() {
        let (locks, held) = (locks.clone(), held.clone());
        start(name.to_string(), move || {
            let mine = locks[i].lock().unwrap();
            held.wait();
            *locks[1 - i].lock().unwrap() += *mine;
        });
    }
    held.wait();
    for i in 0..20 {
        let locks = locks.clone();
        start(format!("web-{i}"), move || *locks[0].lock().unwrap() += 1);
    }
}

// Workers that share the receiver of a queue in a mutex: one waits in recv with the mutex, the others for it.
fn rest() -> mpsc::Sender<Box<dyn FnOnce() + Send>> {
    let (jobs, receiver) = mpsc::channel::<Box<dyn FnOnce() + Send>>();
    let receiver = Arc::new(Mutex::new(receiver));
    for i in 0..8 {
        let receiver = receiver.clone();
        start(format!("worker-{i}"), move || loop {
            let job = receiver.lock().unwrap().recv();
            job.unwrap()();
        });
    }
    jobs
}

fn main() {
    unsafe { prctl(15, b"searchd\0".as_ptr()) };
    let jobs = match std::env::args().nth(1).as_deref() {
        Some("hang") => { hang(); None }
        _ => Some(rest()),
    };
    println!("ready");
    thread::sleep(std::time::Duration::from_secs(1 << 30));
    drop(jobs);
}
