//! Sockets as links need them.
//!
//! Owns their options, and how a dial begins.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};

/// A connection that says nothing for so long is asked by the kernel whether it is there.
const KEEPALIVE: Duration = Duration::from_secs(5);

/// A connection on its way.
pub(super) fn connect(address: SocketAddr, stall_max: Duration) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    match socket.connect(&address.into()) {
        Ok(()) => {}
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
        Err(error) => return Err(error),
    }
    let socket = TcpStream::from(socket);
    tune(&socket, stall_max)?;
    Ok(socket)
}

/// No waiting for more to send, and both ends of a connection that is dead find out: what is sent by its age, what is silent
/// by being asked.
pub(super) fn tune(socket: &TcpStream, stall_max: Duration) -> io::Result<()> {
    let socket = SockRef::from(socket);
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_user_timeout(Some(stall_max))?;
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE))
}
