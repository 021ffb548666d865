//! Which packet goes where, and when: no device, no clock.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

/// Packets between addresses `10.77.0.x` are delayed: the network that is simulated.
pub const DELAYED: [u8; 3] = [10, 77, 0];
/// Packets to `10.78.0.x` pass at once: a service's database beside it, and Prometheus.
pub const DIRECT: [u8; 3] = [10, 78, 0];

/// One-way delays between places, which are numbered from 1.
pub struct Delays {
    places: usize,
    delays: Vec<Duration>,
}

/// The place a packet is for, and how long it takes to get there.
#[derive(Debug, PartialEq, Eq)]
pub struct Route {
    /// Number of the place, from 1.
    pub to: usize,
    /// One-way delay.
    pub delay: Duration,
}

impl Delays {
    /// No delay between any two of that many places.
    pub fn none(places: usize) -> Self {
        Self { places, delays: vec![Duration::ZERO; places * places] }
    }

    fn index(&self, from: usize, to: usize) -> Option<usize> {
        let valid = 1..=self.places;
        (valid.contains(&from) && valid.contains(&to)).then(|| (from - 1) * self.places + to - 1)
    }

    /// Takes a line `FROM TO MICROSECONDS`, where `*` stands for every place. A place has no delay to itself.
    pub fn set(&mut self, line: &str) -> Result<(), String> {
        let wrong = || format!("not FROM TO MICROSECONDS: {line}");
        let [from, to, micros] = line.split_whitespace().collect::<Vec<_>>()[..] else { return Err(wrong()) };
        let delay = Duration::from_micros(micros.parse::<u32>().map_err(|_| wrong())?.into());
        for from in self.matching(from).ok_or_else(wrong)? {
            for to in self.matching(to).ok_or_else(wrong)? {
                if let (true, Some(i)) = (from != to, self.index(from, to)) {
                    self.delays[i] = delay;
                }
            }
        }
        Ok(())
    }

    fn matching(&self, place: &str) -> Option<Vec<usize>> {
        if place == "*" {
            return Some((1..=self.places).collect());
        }
        place.parse().ok().filter(|p| (1..=self.places).contains(p)).map(|p| vec![p])
    }

    /// Where an IPv4 packet goes; nothing for packets that are none of ours.
    pub fn route(&self, packet: &[u8]) -> Option<Route> {
        let header = packet.get(..20)?;
        if header[0] >> 4 != 4 {
            return None;
        }
        let (source, target) = (&header[12..16], &header[16..20]);
        let (from, to) = (usize::from(source[3]), usize::from(target[3]));
        let index = self.index(from, to)?;
        if target[..3] == DIRECT {
            Some(Route { to, delay: Duration::ZERO })
        } else if target[..3] == DELAYED && source[..3] == DELAYED {
            Some(Route { to, delay: self.delays[index] })
        } else {
            None
        }
    }
}

/// When it arrives, how many were sent before it, the place it is for, and the packet.
type Sent = (Instant, u64, usize, Vec<u8>);

/// Packets under way, the next to arrive first; those that arrive together in the order they left.
#[derive(Default)]
pub struct Underway {
    packets: BinaryHeap<Reverse<Sent>>,
    sent: u64,
}

impl Underway {
    /// A packet leaves for a place, to arrive at an instant.
    pub fn send(&mut self, due: Instant, to: usize, packet: Vec<u8>) {
        self.packets.push(Reverse((due, self.sent, to, packet)));
        self.sent += 1;
    }

    /// When the next packet arrives.
    pub fn next_due(&self) -> Option<Instant> {
        self.packets.peek().map(|Reverse((due, ..))| *due)
    }

    /// A packet that has arrived by now, and the place it is for.
    pub fn arrived(&mut self, now: Instant) -> Option<(usize, Vec<u8>)> {
        if self.next_due()? > now {
            return None;
        }
        self.packets.pop().map(|Reverse((_, _, to, packet))| (to, packet))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(source: [u8; 4], target: [u8; 4]) -> Vec<u8> {
        let mut packet = vec![0; 20];
        packet[0] = 0x45;
        packet[12..16].copy_from_slice(&source);
        packet[16..20].copy_from_slice(&target);
        packet
    }

    fn delay(delays: &Delays, source: [u8; 4], target: [u8; 4]) -> Option<u128> {
        delays.route(&packet(source, target)).map(|r| r.delay.as_micros())
    }

    #[test]
    fn a_packet_takes_as_long_as_its_direction_says() {
        let mut delays = Delays::none(3);
        delays.set("* * 75000").unwrap();
        delays.set("1 3 40000").unwrap();
        assert_eq!(delay(&delays, [10, 77, 0, 1], [10, 77, 0, 3]), Some(40_000));
        assert_eq!(delay(&delays, [10, 77, 0, 3], [10, 77, 0, 1]), Some(75_000));
        assert_eq!(delay(&delays, [10, 77, 0, 2], [10, 77, 0, 2]), Some(0));
        assert_eq!(delays.route(&packet([10, 77, 0, 1], [10, 77, 0, 2])).unwrap().to, 2);
    }

    #[test]
    fn the_direct_network_has_no_delay() {
        let mut delays = Delays::none(2);
        delays.set("* * 75000").unwrap();
        assert_eq!(delay(&delays, [10, 78, 0, 1], [10, 78, 0, 2]), Some(0));
    }

    #[test]
    fn packets_of_nobody_go_nowhere() {
        let delays = Delays::none(2);
        assert_eq!(delay(&delays, [10, 77, 0, 1], [10, 77, 0, 3]), None);
        assert_eq!(delay(&delays, [10, 77, 0, 0], [10, 77, 0, 1]), None);
        assert_eq!(delay(&delays, [10, 77, 0, 1], [10, 79, 0, 2]), None);
        assert_eq!(delay(&delays, [10, 78, 0, 1], [10, 77, 0, 2]), None);
        assert!(delays.route(&[0x45; 19]).is_none());
        assert!(delays.route(&[0x60; 40]).is_none());
    }

    #[test]
    fn lines_that_say_something_else_are_refused() {
        let mut delays = Delays::none(2);
        for line in ["", "1 2", "1 2 3 4", "0 1 5", "1 3 5", "1 2 -5", "1 2 1.5", "a b c", "1 2 99999999999"]
        {
            assert!(delays.set(line).is_err(), "{line}");
        }
    }

    #[test]
    fn packets_arrive_by_time_and_then_in_order() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut underway = Underway::default();
        underway.send(at(20), 1, vec![1]);
        underway.send(at(10), 2, vec![2]);
        underway.send(at(20), 1, vec![3]);
        assert_eq!(underway.next_due(), Some(at(10)));
        assert_eq!(underway.arrived(at(9)), None);
        assert_eq!(underway.arrived(at(10)), Some((2, vec![2])));
        assert_eq!(underway.arrived(at(19)), None);
        assert_eq!(underway.arrived(at(25)), Some((1, vec![1])));
        assert_eq!(underway.arrived(at(25)), Some((1, vec![3])));
        assert_eq!(underway.arrived(at(99)), None);
        assert_eq!(underway.next_due(), None);
    }
}
