//! Engines on real sockets.

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod life;
#[cfg(test)]
mod moves;
#[cfg(test)]
mod pair;
#[cfg(test)]
mod shm;
