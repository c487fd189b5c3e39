package mapper

// Forms returns an empty value of what each kind of row of a journal has:
// "event KIND", "decision KIND" and "snapshot".
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

// WrittenAs lists the types with an own form in JSON, each with a value of the
// form. A [Reason] may also be a text.
func WrittenAs() [][2]any {
	return [][2]any{{Reason{}, Reason{}}, {pairs{}, pairsForm{}}}
}

// Words lists the values of the types whose values decide what a program does.
// [ReasonCode] is one more; package words has its values.
func Words() []any {
	return []any{
		Phases, Conditions,
		[]Class{ExitOK, ExitProgram, ExitGPUOOM, ExitSuspectedOOM, ExitHostOOM, ExitInfrastructure, ExitEvicted, ExitMPSFault, ExitCannotStart, ExitStopped},
		[]SuspendKind{SuspendHere, SuspendMove},
		[]Sharing{SharingUsers, SharingTurns, SharingAlone},
		[]BreakerScope{ScopeEngine, ScopeGPU, ScopeNamespace, ScopeUnknown},
	}
}
