package words

import (
	"fmt"

	"carma/mapper/explain"
	"carma/mapper/model"
	"carma/mapper/queue"
)

// Why returns, in one line, the reason why a task waits, or "" if it does not.
func Why(w explain.Why) string {
	if text := why(w); w.Away.Code == "" {
		return text
	} else {
		return join(Reason(w.Away), text)
	}
}

func why(w explain.Why) string {
	text := Reason(w.Binding)
	switch w.Binding.Code {
	case model.ReasonFairShare:
		if w.Turn != nil {
			return turn(*w.Turn)
		}
	case model.ReasonTurnedDown:
		switch {
		case w.Nearest == nil:
		case w.Turn != nil:
			return Rejection(*w.Nearest) + "; " + turn(*w.Turn)
		case w.Binding.Limit > 1:
			return text + "; " + Rejection(*w.Nearest)
		default:
			return Rejection(*w.Nearest)
		}
	}
	return text
}

func turn(t queue.Turn) string {
	return fmt.Sprintf("by fair share %s first, as %s has used %s and %s %s",
		laterTasks(t.Later), whose(t.User, t.Account), gpuHours(t.Use), whose(t.Own, t.OwnAccount), gpuHours(t.OwnUse))
}

// whose names the user of GPUs: a user, or an account whose members are treated as one.
func whose(user, account string) string {
	if account != "" {
		return "group " + account
	}
	return user
}

func gpuHours(seconds float64) string { return fmt.Sprintf("%.1f GPU hours", seconds/3600) }
