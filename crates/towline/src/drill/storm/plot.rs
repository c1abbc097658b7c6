//! The drawing of one scenario: connected endpoints over time.
//!
//! Owns the drawing. Does not own what is drawn.

use std::path::Path;

use anyhow::{Result, anyhow};
use plotters::prelude::*;
use towline_transfer_proto::storm::{GOODPUT_STEP, Report};

/// Width and height in pixels.
const SIZE: (u32, u32) = (960, 540);

/// Beyond this a drawing would show nothing but lines that stay where they are.
const SECONDS_MAX: f64 = 120.0;

/// One policy.
#[derive(Debug, Clone)]
pub(super) struct Line {
    name: &'static str,
    /// Seconds, and percent connected from then on.
    points: Vec<(f64, f64)>,
}

impl Line {
    pub(super) fn new(name: &'static str, report: &Report) -> Self {
        let width = GOODPUT_STEP.as_secs_f64();
        let percent = |connected: u32| 100.0 * f64::from(connected) / (report.endpoints.max(1) as f64);
        let steps = report
            .goodput
            .iter()
            .enumerate()
            .map(|(at, connected)| ((at + 1) as f64 * width, percent(*connected)));
        let points = std::iter::once((0.0, 0.0)).chain(steps).take_while(|(at, _)| *at <= SECONDS_MAX);
        Self { name, points: points.collect() }
    }
}

/// Draws the lines.
///
/// # Errors
/// When the file cannot be written.
pub(super) fn draw(path: &Path, title: &str, lines: &[Line]) -> Result<()> {
    let mut svg = String::new();
    chart(&mut svg, title, lines).map_err(|error| anyhow!("cannot draw: {error}"))?;
    std::fs::write(path, svg).map_err(|error| anyhow!("cannot write {}: {error}", path.display()))
}

fn chart(svg: &mut String, title: &str, lines: &[Line]) -> Result<(), Box<dyn std::error::Error>> {
    // A line ends where its fleet had settled: it is drawn on to where the last one ends.
    let ends = lines.iter().filter_map(|line| line.points.last());
    let x_max = ends.map(|point| point.0).fold(GOODPUT_STEP.as_secs_f64(), f64::max);
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..x_max, 0.0..105.0)?;
    chart
        .configure_mesh()
        .x_desc("seconds")
        .y_desc("percent of the endpoints connected")
        .y_label_formatter(&|value| format!("{value:.0}"))
        .light_line_style(WHITE.mix(0.0))
        .draw()?;
    for (index, line) in lines.iter().enumerate() {
        let color = Palette99::pick(index).to_rgba();
        let level = line.points.last().map_or(0.0, |point| point.1);
        let points = line.points.iter().copied().chain(std::iter::once((x_max, level)));
        chart
            .draw_series(LineSeries::new(points, color.stroke_width(2)))?
            .label(line.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .draw()?;
    root.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plot_is_svg_with_its_lines() {
        let mut svg = String::new();
        let line = |name| Line { name, points: vec![(0.0, 0.0), (0.1, 50.0), (0.2, 100.0)] };
        chart(&mut svg, "A1 <x>", &[line("legacy"), line("ours")]).unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("legacy") && svg.contains("A1 &lt;x&gt;"));
        let mut svg = String::new();
        chart(&mut svg, "empty", &[]).unwrap();
        assert!(svg.contains("</svg>"));
    }
}
