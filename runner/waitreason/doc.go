// Package waitreason owns the reasons why tasks wait, as they were last computed: for listings
// (Cache), and for the histories of tasks (Recorder). The scheduler computes a reason on
// request, and no event contains it. For the history, the daemon stores the reasons of the
// tasks that have waited longest, in memory.
package waitreason
