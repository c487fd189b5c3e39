package mapper

import "testing"

// A result counts only for its candidate, GPU and forecast: not for a candidate with the
// same row, and not after the forecast was computed again.
func TestAnswerTable(t *testing.T) {
	table, g := scoreTable{version: 1}, &GPU{pos: 3}
	m := &memo{version: 1}
	table.enter(g, m, 7, &scoreResult{added: 12, no: refusal{rule: RuleWait}})
	if k := table.find(g, m, 7); k == nil || k.added != 12 || k.rule() != RuleWait || k.rough() {
		t.Errorf("the answer that was entered is %+v", k)
	}
	table.enter(&GPU{pos: 1}, m, 7, &scoreResult{rough: true, no: refusal{rule: RuleSlowdown}})
	if k := table.find(&GPU{pos: 1}, m, 7); k == nil || !k.rough() || k.rule() != RuleSlowdown {
		t.Errorf("the rough answer is %+v", k)
	}
	for name, k := range map[string]*scoreEntry{
		"of the other newcomer of the row": table.find(g, m, 7+answerRows),
		"of another GPU":                   table.find(&GPU{pos: 2}, m, 7),
		"of a GPU that was not asked":      table.find(&GPU{pos: 4}, m, 7),
		"of a later outlook":               table.find(g, &memo{version: 2}, 7),
	} {
		if k != nil {
			t.Errorf("there is an answer %s: %+v", name, k)
		}
	}
	table.enter(g, m, 7, &scoreResult{no: refusal{rule: RuleMemory}})
	if k := table.find(g, m, 7); k == nil || k.rule() != RuleWait {
		t.Errorf("an answer by a rule that is not kept took the place of %+v", k)
	}
}
