package mapper

import "carma/mapper/model"

// Forms returns an empty value for each kind of journal row: "event KIND", "decision
// KIND" and "snapshot".
func Forms() map[string]any {
	forms := map[string]any{"snapshot": snapshot{}}
	for kind, decode := range model.EventDecoders {
		forms["event "+kind], _ = decode([]byte("{}"))
	}
	for kind, decode := range model.DecisionDecoders {
		forms["decision "+kind], _ = decode([]byte("{}"))
	}
	return forms
}

// WrittenAs lists the types with their own JSON form, each with a value of that form. A
// [model.Reason] may also be a text.
func WrittenAs() [][2]any {
	return [][2]any{{model.Reason{}, model.Reason{}}}
}

// Words lists the values of the types whose values affect what a program does.
// [model.ReasonCode] is one more such type; package words has its values.
func Words() []any {
	return []any{
		model.Phases, model.Conditions,
		[]model.Class{model.ExitOK, model.ExitProgram, model.ExitGPUOOM, model.ExitSuspectedOOM, model.ExitHostOOM, model.ExitInfrastructure, model.ExitEvicted, model.ExitMPSFault, model.ExitCannotStart, model.ExitStopped},
		[]model.SuspendKind{model.SuspendHere, model.SuspendMove},
		[]model.Sharing{model.SharingUsers, model.SharingTurns, model.SharingAlone},
		[]model.BreakerScope{model.ScopeEngine, model.ScopeGPU, model.ScopeNamespace, model.ScopeUnknown},
	}
}
