//! The SVG plots.
//!
//! Owns the two drawings. Does not own what is drawn into them.

use std::path::Path;

use anyhow::{Result, anyhow};
use hdrhistogram::Histogram;
use plotters::prelude::*;

/// Width and height of a plot in pixels.
const SIZE: (u32, u32) = (960, 540);

/// Steps of the percentile axis per factor of ten.
const STEPS_PER_DECADE: u32 = 20;

/// Decades of the percentile axis: 0 is the minimum, 1 is 90 %, 5 is 99.999 %.
const DECADES: u32 = 5;

/// One named line.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    /// Its name in the legend.
    pub(crate) name: String,
    /// Its points.
    pub(crate) points: Vec<(f64, f64)>,
}

impl Line {
    /// Latency in microseconds over the decades of the percentile.
    pub(crate) fn percentiles(name: &str, histogram: &Histogram<u64>) -> Self {
        let points = (0..=DECADES * STEPS_PER_DECADE).map(|step| {
            let decade = f64::from(step) / f64::from(STEPS_PER_DECADE);
            let quantile = 1.0 - 10_f64.powf(-decade);
            (decade, histogram.value_at_quantile(quantile) as f64 / 1000.0)
        });
        Self { name: name.to_owned(), points: points.collect() }
    }

    /// Commands per second over seconds, from `(seconds since the start, commands so far)`.
    pub(crate) fn throughput(name: &str, progress: &[(f64, u64)]) -> Self {
        let mut points = Vec::with_capacity(progress.len());
        for pair in progress.windows(2) {
            let [(from, before), (to, after)] = [pair[0], pair[1]];
            if to > from {
                points.push((to, (after - before) as f64 / (to - from)));
            }
        }
        Self { name: name.to_owned(), points }
    }
}

/// Draws latency by percentile.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn draw_percentiles(path: &Path, lines: &[Line]) -> Result<()> {
    let label = |decade: &f64| format!("{}%", trim(100.0 * (1.0 - 10_f64.powf(-decade))));
    draw(
        path,
        lines,
        &Axes {
            title: "Latency by percentile",
            x: "percentile",
            y: "microseconds",
            x_labels: DECADES as usize + 1,
        },
        &label,
    )
}

/// Draws commands per second over time.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn draw_throughput(path: &Path, lines: &[Line]) -> Result<()> {
    let axes = Axes { title: "Throughput", x: "seconds", y: "commands per second", x_labels: 11 };
    draw(path, lines, &axes, &|seconds: &f64| format!("{seconds:.1}"))
}

fn trim(percent: f64) -> String {
    let text = format!("{percent:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

struct Axes {
    title: &'static str,
    x: &'static str,
    y: &'static str,
    x_labels: usize,
}

fn draw(path: &Path, lines: &[Line], axes: &Axes, x_label: &dyn Fn(&f64) -> String) -> Result<()> {
    let mut svg = String::new();
    chart(&mut svg, lines, axes, x_label).map_err(|error| anyhow!("cannot draw: {error}"))?;
    std::fs::write(path, svg).map_err(|error| anyhow!("cannot write {}: {error}", path.display()))
}

fn chart(
    svg: &mut String,
    lines: &[Line],
    axes: &Axes,
    x_label: &dyn Fn(&f64) -> String,
) -> Result<(), Box<dyn std::error::Error>> {
    let points = || lines.iter().flat_map(|line| &line.points);
    let x_max = points().map(|point| point.0).fold(f64::EPSILON, f64::max);
    let y_max = points().map(|point| point.1).fold(f64::EPSILON, f64::max) * 1.05;
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(axes.title, ("sans-serif", 22))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(90)
        .build_cartesian_2d(0.0..x_max, 0.0..y_max)?;
    chart
        .configure_mesh()
        .x_desc(axes.x)
        .y_desc(axes.y)
        .x_labels(axes.x_labels)
        .x_label_formatter(x_label)
        .y_label_formatter(&|value| format!("{value:.0}"))
        .light_line_style(WHITE.mix(0.0))
        .draw()?;
    for (index, line) in lines.iter().enumerate() {
        let color = Palette99::pick(index).to_rgba();
        chart
            .draw_series(LineSeries::new(line.points.iter().copied(), color.stroke_width(2)))?
            .label(line.name.as_str())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2)));
    }
    chart.configure_series_labels().position(SeriesLabelPosition::UpperLeft).border_style(BLACK).draw()?;
    root.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tally::histogram;
    use super::*;

    #[test]
    fn both_plots_are_svg_with_their_lines() {
        let mut latency = histogram();
        (1..10_000).for_each(|us| latency.saturating_record(us * 1000));
        let lines = [Line::percentiles("get", &latency), Line::percentiles("set & more", &latency)];
        let mut svg = String::new();
        let axes = Axes { title: "t", x: "x", y: "y", x_labels: 5 };
        chart(&mut svg, &lines, &axes, &|value| value.to_string()).unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("</svg>"));
        assert!(svg.contains("get") && svg.contains("set &amp; more"));
    }

    #[test]
    fn throughput_is_the_slope_of_progress() {
        let line = Line::throughput("get", &[(0.0, 0), (0.5, 100), (0.5, 100), (1.0, 400)]);
        assert_eq!(line.points, [(0.5, 200.0), (1.0, 600.0)]);
    }

    #[test]
    fn an_empty_plot_is_drawn() {
        let mut svg = String::new();
        chart(&mut svg, &[], &Axes { title: "t", x: "x", y: "y", x_labels: 5 }, &|value| value.to_string())
            .unwrap();
        assert!(svg.contains("</svg>"));
    }

    #[test]
    fn percentile_labels_are_short() {
        assert_eq!([trim(90.0), trim(99.9), trim(0.0)], ["90", "99.9", "0"]);
    }
}
