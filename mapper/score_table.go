package mapper

import "slices"

// scoreTable keeps the part of the latest answers that a pass asks for, in the order of
// the GPUs. A pass asks the same of one GPU after the other: with the answers of each in
// its memo, three places of memory far from each other were read for every GPU, which
// took half of the time of a replay with thousands of GPUs.
type scoreTable struct {
	version uint64                   // that of the latest outlook
	rows    [answerRows][]scoreEntry // by number of the newcomer, cut off, and position of the GPU
}

// answerRows is a power of two: the newcomers that a look-ahead tries, and some more.
const answerRows = 64

// scoreEntry is an answer as the table keeps it, in 16 bytes.
type scoreEntry struct {
	key   uint64 // from the version of the outlook, the number of the newcomer, and how it went
	added float64
}

// A key has, from the top, the version, the number, a bit for a rough answer, and the rule's
// place in keptRules.
const (
	keyRule    = 3 // bits
	keyRough   = 1 << keyRule
	keyOutcome = keyRule + 1 // bits
	keyNumber  = 20          // bits
)

// keptRules are the rules by which a newcomer is weighed. An answer by another is not kept.
var keptRules = [...]Rule{"", RuleSlowdown, RuleWait, RuleUnseen}

func (k *scoreEntry) rule() Rule  { return keptRules[k.key&(1<<keyRule-1)] }
func (k *scoreEntry) rough() bool { return k.key&keyRough != 0 }

// scoreKey is the key of an answer, without how it went.
func scoreKey(m *memo, id int) uint64 { return m.version<<keyNumber | uint64(id) }

// find returns the answer on a GPU with a memo that is up to date; nil: it is not kept.
func (t *scoreTable) find(g *GPU, m *memo, id int) *scoreEntry {
	row := t.rows[id%answerRows]
	if g.pos >= len(row) || row[g.pos].key>>keyOutcome != scoreKey(m, id) {
		return nil
	}
	return &row[g.pos]
}

// addTask keeps an answer.
func (t *scoreTable) enter(g *GPU, m *memo, id int, a *scoreResult) {
	rule := slices.Index(keptRules[:], a.no.rule)
	if rule < 0 || id >= 1<<keyNumber {
		return
	}
	row := &t.rows[id%answerRows]
	if g.pos >= len(*row) {
		*row = append(*row, make([]scoreEntry, g.pos+1-len(*row))...)
	}
	key := scoreKey(m, id)<<keyOutcome | uint64(rule)
	if a.rough {
		key |= keyRough
	}
	(*row)[g.pos] = scoreEntry{key, a.added}
}
