// Package verify reads what a journal holds and checks it against this program.
//
// [History] yields the events with the decisions on them, [Compare] compares recorded
// decisions with the decisions of this program, and [Readable] reports whether this
// program understands all rows. [Journal] replays a whole journal through the mapper, and
// checks the invariants after every event. Nothing here writes a journal.
package verify
