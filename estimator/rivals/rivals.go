// Package rivals contains published methods of estimating a training's GPU memory, for
// comparison. Each follows its source. carma estimate shows their estimates, and a replay
// can run policies with them. No memory is allocated by them, so the daemon does not
// include them.
//
// They follow their sources to different degrees. horus and deepspeed are the published
// formulas. faketensor simulates a published tracker; the tensors that it counts are
// inferred from its published numbers. dnnmem and llmem have the parts that their papers
// name, but carma's own formulas. gpumemnet is trained by this project on the published
// data.
package rivals

import "carma/estimator/methods"

// All returns carma's own method and the rivals, in the order of tables.
func All(own methods.Method) []methods.Method {
	return append(append([]methods.Method{own}, Classifiers()...), Formulas()...)
}

// Formulas returns the rivals that need only a subject.
func Formulas() []methods.Method {
	return []methods.Method{Horus{Constant: 800 << 20}, FakeTensor{}, DNNMem{}, LLMem{}, DeepSpeed{}}
}
