// Two threads of the standard library, each with the mutex that the other wants.
use std::io::Write;
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

extern "C" {
    fn gettid() -> i32;
}

fn main() {
    // What the mutexes keep looks like __owner and __nusers of glibc's.
    let like_glibc = u64::from(std::process::id()) | 1 << 32;
    let locks = Arc::new([Mutex::new(like_glibc), Mutex::new(like_glibc)]);
    let (held, said) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(3)));
    let tids = Arc::new(Mutex::new([0; 2]));
    let all: Vec<_> = (0..2)
        .map(|i| {
            let (locks, held, said, tids) = (locks.clone(), held.clone(), said.clone(), tids.clone());
            thread::spawn(move || {
                let mine = locks[i].lock().unwrap();
                tids.lock().unwrap()[i] = unsafe { gettid() };
                held.wait();
                said.wait();
                let other = locks[1 - i].lock().unwrap();
                std::hint::black_box(*mine + *other)
            })
        })
        .collect();
    said.wait();
    let t = *tids.lock().unwrap();
    println!("ready a={} b={}", t[0], t[1]);
    std::io::stdout().flush().unwrap();
    for t in all {
        t.join().unwrap();
    }
}
