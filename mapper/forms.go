package mapper

// Forms returns an empty value for each kind of journal row: "event KIND", "decision
// KIND" and "snapshot".
func Forms() map[string]any {
	forms := map[string]any{"snapshot": snapshot{}}
	for kind, decode := range eventDecoders {
		forms["event "+kind], _ = decode([]byte("{}"))
	}
	for kind, decode := range decisionDecoders {
		forms["decision "+kind], _ = decode([]byte("{}"))
	}
	return forms
}

// WrittenAs lists the types with their own JSON form, each with a value of that form. A
// [Reason] may also be a text.
func WrittenAs() [][2]any {
	return [][2]any{{Reason{}, Reason{}}, {pairs{}, pairsForm{}}}
}

// Words lists the values of the types whose values affect what a program does.
// [ReasonCode] is one more such type; package words has its values.
func Words() []any {
	return []any{
		Phases, Conditions,
		[]Class{ExitOK, ExitProgram, ExitGPUOOM, ExitSuspectedOOM, ExitHostOOM, ExitInfrastructure, ExitEvicted, ExitMPSFault, ExitCannotStart, ExitStopped},
		[]SuspendKind{SuspendHere, SuspendMove},
		[]Sharing{SharingUsers, SharingTurns, SharingAlone},
		[]BreakerScope{ScopeEngine, ScopeGPU, ScopeNamespace, ScopeUnknown},
	}
}
