//! One process writes into the memory of another, tells it, and reads back what that made of it.
//!
//! ```sh
//! cargo run --example two_processes -- serve 127.0.0.1:7100
//! cargo run --example two_processes -- write 127.0.0.1:7100 "what the quick brown fox said"
//! ```
//!
//! The first waits for notifications, turns the text that each is about into capitals, and answers. The second prints what came
//! back.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::time::Duration;

use towline_transfer::{Access, Engine, EngineConfig, MemoryRegion, Request, Trust};

const PATIENCE: Duration = Duration::from_secs(10);

/// Both processes have it. A real one does not stand in a program.
const SECRET: &str = "an example's secret, known to everybody";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", at] => serve(at),
        ["write", to, text] => write(to, text),
        _ => Err("serve ADDRESS:PORT, or write ADDRESS:PORT TEXT".into()),
    }
}

fn serve(at: &str) -> Result<(), Box<dyn Error>> {
    let engine = Engine::start(EngineConfig::new(Trust::key(SECRET)).listen(at.parse()?))?;
    let page = MemoryRegion::allocate(4096)?;
    engine.register("page", &page, Access::ReadWrite)?;
    println!("{} offers a page", engine.name());
    loop {
        // The notification follows its bytes: when it is here, they are.
        let Some(notification) = engine.wait_notification(Duration::from_secs(3600)) else { continue };
        let length: usize = String::from_utf8(notification.payload)?.parse()?;
        let text = String::from_utf8_lossy(&page.to_vec(0, length.min(page.len()))?).to_uppercase();
        page.write(2048, &text.as_bytes()[..text.len().min(2048)])?;
        println!("{} wrote {length} bytes; now they are {text}", notification.from.node);
        // The asker listens nowhere, and is reached over the link that it made.
        page.write(4095, &[1])?;
    }
}

fn write(to: &str, text: &str) -> Result<(), Box<dyn Error>> {
    let engine = Engine::start(EngineConfig::new(Trust::key(SECRET)).name("writer"))?;
    let memory = MemoryRegion::allocate(4096)?;
    let scratch = engine.register("scratch", &memory, Access::Local)?;
    let segment = engine.open(to).wait_for(PATIENCE)?;
    let page = segment.region("page").ok_or("no page is offered there")?;
    let length = text.len() as u64;

    // Bytes first, then the flag that the answer is not there yet, then the notification: all of it is one batch.
    memory.write(0, text.as_bytes())?;
    let write = Request::write(&scratch, 0, &page, 0, length);
    let clear = Request::write(&scratch, 4095, &page, 4095, 1);
    let batch = segment.submit_and_notify(&[write, clear], length.to_string())?;
    println!("written: {:?}", batch.wait().statuses);

    loop {
        let read = Request::read(&scratch, 2048, &page, 2048, 2048).timeout(PATIENCE);
        let result = segment.submit(&[read])?.wait();
        if !result.is_complete() {
            return Err(format!("cannot read: {:?}", result.statuses).into());
        }
        if memory.to_vec(4095, 1)? == [1] {
            break;
        }
    }
    println!("read: {}", String::from_utf8_lossy(&memory.to_vec(2048, text.len())?));
    Ok(())
}
