// Package rivals has the published ways to estimate a training's GPU memory, for
// comparison. Each follows its source. carma estimate shows them, and a replay can run
// policies with them. No memory is allocated by them, so the daemon does not have them.
//
// They follow their sources to different degrees. horus and deepspeed are the
// published formulas. faketensor simulates a published tracker; which tensors it
// still sees is derived from its published numbers. dnnmem and llmem have the
// parts that their papers name, but the formulas are ours. gpumemnet is trained
// by this project on the published data.
package rivals

import "carma/estimator/methods"

// All returns carma's own method and the rivals, in the order of tables.
func All(own methods.Method) []methods.Method {
	return append(append([]methods.Method{own}, Classifiers()...), Formulas()...)
}

// Formulas are the rivals that need only a subject.
func Formulas() []methods.Method {
	return []methods.Method{Horus{Constant: 800 << 20}, FakeTensor{}, DNNMem{}, LLMem{}, DeepSpeed{}}
}
