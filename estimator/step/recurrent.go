package step

import "carma/configs/models"

// bothGradients computes the gradients of a layer's inputs and weights. PyTorch's
// operator for cuDNN (ATen/native/cudnn/RNN.cpp) makes a gradient of a recurrent layer's
// input whether it is wanted or not. Where samples come before steps (batch_first), it
// copies the input, and the output's gradient until that of the input is there.
func (r *run) bothGradients(l *layer) error {
	if l.kind != models.Recurrent || len(l.inputs) == 0 {
		if err := r.scoreGradients(l); err != nil {
			return err
		}
		if err := r.inputGradients(l); err != nil {
			return err
		}
		return r.weightGradients(l)
	}
	in := &r.values[l.inputs[0]]
	x, err := r.take(in.bytes, Activations)
	if err != nil {
		return err
	}
	dy, err := r.take(l.out, Activations)
	if err != nil {
		return err
	}
	var unwanted chunk
	if !in.grad {
		if unwanted, err = r.take(in.bytes, Activations); err != nil {
			return err
		}
	}
	if err := r.inputGradients(l); err != nil {
		return err
	}
	r.release(&dy)
	if err := r.weightGradients(l); err != nil {
		return err
	}
	r.release(&x)
	r.release(&unwanted)
	return nil
}
