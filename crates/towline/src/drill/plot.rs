//! The drawing of one run: throughput by 10 ms with the events marked.
//!
//! Owns the drawing. Does not own what is drawn.

use std::path::Path;

use anyhow::{Result, anyhow};
use plotters::prelude::*;

use super::director::Happening;
use super::steps;
use super::timeline::BUCKET;

/// Width and height in pixels.
const SIZE: (u32, u32) = (1200, 480);

/// Draws `buckets` of a run with this title.
///
/// # Errors
/// When the file cannot be written.
pub(super) fn draw(path: &Path, title: &str, buckets: &[u64], happenings: &[Happening]) -> Result<()> {
    let mut svg = String::new();
    chart(&mut svg, title, buckets, happenings).map_err(|error| anyhow!("cannot draw: {error}"))?;
    std::fs::write(path, svg).map_err(|error| anyhow!("cannot write {}: {error}", path.display()))
}

fn chart(
    svg: &mut String,
    title: &str,
    buckets: &[u64],
    happenings: &[Happening],
) -> Result<(), Box<dyn std::error::Error>> {
    let width = BUCKET.as_secs_f64();
    let points = || buckets.iter().enumerate().map(|(at, count)| (at as f64 * width, *count as f64 / width));
    let x_max = (buckets.len() as f64 * width).max(width);
    let y_max = points().map(|point| point.1).fold(1.0, f64::max) * 1.25;
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(title, ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(90)
        .build_cartesian_2d(0.0..x_max, 0.0..y_max)?;
    chart
        .configure_mesh()
        .x_desc("seconds")
        .y_desc("commands per second")
        .y_label_formatter(&|value| format!("{value:.0}"))
        .light_line_style(WHITE.mix(0.0))
        .draw()?;
    // A bucket is as wide as it lasts: a line between two of them would show a slope that was not there.
    let steps = points().flat_map(|(x, y)| [(x, y), (x + width, y)]);
    chart.draw_series(LineSeries::new(steps, BLUE.stroke_width(1)))?;
    let of_server = happenings.iter().filter(|happening| happening.label != steps::LABEL);
    for (number, happening) in of_server.enumerate() {
        let x = happening.at_ms / 1000.0;
        chart.draw_series(LineSeries::new([(x, 0.0), (x, y_max)], RED.mix(0.6).stroke_width(1)))?;
        // Events close to each other stay readable below each other.
        let y = y_max * (0.99 - 0.05 * (number % 5) as f64);
        chart.draw_series([Text::new(format!(" {}", happening.label), (x, y), ("sans-serif", 13))])?;
    }
    root.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plot_is_svg_with_its_events() {
        let happening = Happening { at_ms: 50.0, what: String::new(), label: "MOVING" };
        let mut svg = String::new();
        chart(&mut svg, "plain <1>", &[10, 20, 0, 15], &[happening]).unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("MOVING") && svg.contains("plain &lt;1&gt;"));
        let mut svg = String::new();
        chart(&mut svg, "empty", &[], &[]).unwrap();
        assert!(svg.contains("</svg>"));
    }
}
