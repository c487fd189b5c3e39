package words

import "carma/mapper/model"

// Ended returns how a task ended that did not succeed, as a sentence.
func Ended(p model.Phase) string {
	return map[model.Phase]string{model.Failed: "it has failed", model.Cancelled: "it was cancelled"}[p]
}
