//! Places that are used again, with names that are not.

#[derive(Debug)]
pub(super) struct Place<T> {
    generation: u32,
    value: Option<T>,
}

/// Places with generations: a name is its place and the number of its use.
#[derive(Debug)]
pub(super) struct Places<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

impl<T> Places<T> {
    pub(super) const fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }

    pub(super) fn insert(&mut self, value: T) -> (u32, u32) {
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place { generation: 0, value: None });
            u32::try_from(self.places.len() - 1).unwrap_or(u32::MAX)
        });
        let place = &mut self.places[index as usize];
        place.generation = place.generation.wrapping_add(1);
        place.value = Some(value);
        (index, place.generation)
    }

    pub(super) fn find(&self, index: u32, generation: u32) -> Option<&T> {
        let place = self.places.get(index as usize).filter(|place| place.generation == generation)?;
        place.value.as_ref()
    }

    pub(super) fn find_mut(&mut self, index: u32, generation: u32) -> Option<&mut T> {
        let place = self.places.get_mut(index as usize).filter(|place| place.generation == generation)?;
        place.value.as_mut()
    }

    pub(super) fn remove(&mut self, index: u32, generation: u32) -> Option<T> {
        let place = self.places.get_mut(index as usize).filter(|place| place.generation == generation)?;
        let value = place.value.take()?;
        self.free.push(index);
        Some(value)
    }

    pub(super) fn count(&self) -> usize {
        self.places.len() - self.free.len()
    }
}
