package place

import (
	"testing"

	"carma/mapper/model"
)

// TestAnswerTable checks that a result counts only for its candidate, GPU and forecast. It does
// not count for another candidate with the same row, nor after the forecast was computed again.
func TestAnswerTable(t *testing.T) {
	table, g := scoreTable{version: 1}, gpuAt(3)
	m := &memo{version: 1}
	table.enter(g, m, 7, &scoreResult{added: 12, no: refusal{rule: model.RuleWait}})
	if k := table.find(g, m, 7); k == nil || k.added != 12 || k.rule() != model.RuleWait || k.rough() {
		t.Errorf("the answer that was entered is %+v", k)
	}
	table.enter(gpuAt(1), m, 7, &scoreResult{rough: true, no: refusal{rule: model.RuleSlowdown}})
	if k := table.find(gpuAt(1), m, 7); k == nil || !k.rough() || k.rule() != model.RuleSlowdown {
		t.Errorf("the rough answer is %+v", k)
	}
	for name, k := range map[string]*scoreEntry{
		"of the other candidate of the row": table.find(g, m, 7+answerRows),
		"of another GPU":                    table.find(gpuAt(2), m, 7),
		"of a GPU that was not asked":       table.find(gpuAt(4), m, 7),
		"of a later forecast":               table.find(g, &memo{version: 2}, 7),
	} {
		if k != nil {
			t.Errorf("there is an answer %s: %+v", name, k)
		}
	}
	table.enter(g, m, 7, &scoreResult{no: refusal{rule: model.RuleMemory}})
	if k := table.find(g, m, 7); k == nil || k.rule() != model.RuleWait {
		t.Errorf("an answer by a rule that is not kept took the place of %+v", k)
	}
}

// gpuAt returns a GPU at a position of the ledger's list.
func gpuAt(pos int) *model.GPU {
	g := &model.GPU{}
	g.SetPos(pos)
	return g
}
