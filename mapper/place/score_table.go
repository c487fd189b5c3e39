package place

import (
	"slices"

	"carma/mapper/model"
)

// scoreTable stores the part of the latest results that a scheduling cycle needs, in the
// order of the GPUs. A cycle asks one GPU after the other for the same candidate. With
// each result in the memo of its GPU, it read three distant places of memory for every
// GPU, which took half of the time of a replay with thousands of GPUs.
type scoreTable struct {
	version uint64                   // of the latest forecast
	rows    [answerRows][]scoreEntry // by candidate number modulo answerRows, and position of the GPU
}

// answerRows is a power of two: the candidates that a look-ahead tries, and some more.
const answerRows = 64

// scoreEntry is a result as the table stores it, in 16 bytes.
type scoreEntry struct {
	key   uint64 // from the version of the forecast, the candidate number, and the outcome
	added float64
}

// A key has, from the top, the version, the number, a bit for a rough result, and the
// index of the rule in keptRules.
const (
	keyRule    = 3 // bits
	keyRough   = 1 << keyRule
	keyOutcome = keyRule + 1 // bits
	keyNumber  = 20          // bits
)

// keptRules are the rules that scoring returns. A result with another rule is not stored.
var keptRules = [...]model.Rule{"", model.RuleSlowdown, model.RuleWait, model.RuleUnseen}

func (k *scoreEntry) rule() model.Rule { return keptRules[k.key&(1<<keyRule-1)] }
func (k *scoreEntry) rough() bool      { return k.key&keyRough != 0 }

// scoreKey returns the key of a result, without its outcome.
func scoreKey(m *memo, id int) uint64 { return m.version<<keyNumber | uint64(id) }

// find returns the result on a GPU with a current memo, or nil if it is not stored.
func (t *scoreTable) find(g *model.GPU, m *memo, id int) *scoreEntry {
	row := t.rows[id%answerRows]
	if g.Pos() >= len(row) || row[g.Pos()].key>>keyOutcome != scoreKey(m, id) {
		return nil
	}
	return &row[g.Pos()]
}

// enter stores a result.
func (t *scoreTable) enter(g *model.GPU, m *memo, id int, a *scoreResult) {
	rule := slices.Index(keptRules[:], a.no.rule)
	if rule < 0 || id >= 1<<keyNumber {
		return
	}
	row := &t.rows[id%answerRows]
	if g.Pos() >= len(*row) {
		*row = append(*row, make([]scoreEntry, g.Pos()+1-len(*row))...)
	}
	key := scoreKey(m, id)<<keyOutcome | uint64(rule)
	if a.rough {
		key |= keyRough
	}
	(*row)[g.Pos()] = scoreEntry{key, a.added}
}
