// Package measure fills the page of metrics: Meter reads the figures of a scrape from the
// scheduler's state and the records, Counter counts the effects of events as they become durable.
// runner/metrics has the page itself, with names and formats.
package measure
