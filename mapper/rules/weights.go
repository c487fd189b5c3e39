package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"carma/mapper/model"
)

// weights reads a list of user=weight, in any order.
func weights(raw any) ([]model.Weight, error) {
	var words []string
	if m, ok := raw.(map[string]any); ok { // {ada: 2} has the same meaning
		for user, v := range m {
			words = append(words, user+"="+text(v))
		}
	} else {
		var err error
		if words, err = list(raw); err != nil {
			return nil, fmt.Errorf("%s is not a list of weights; write for example [ada=2, bob=0.5]", quote(raw))
		}
	}
	var all []model.Weight
	for _, word := range words {
		user, number, _ := strings.Cut(word, "=")
		w, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if user = strings.TrimSpace(user); user == "" || err != nil {
			return nil, fmt.Errorf("%q is not a user's weight; write for example ada=2", word)
		}
		all = append(all, model.Weight{User: user, Weight: w})
	}
	slices.SortStableFunc(all, func(a, b model.Weight) int { return cmp.Compare(a.User, b.User) })
	return all, nil
}

func showWeights(all []model.Weight) string {
	words := make([]string, len(all))
	for i, w := range all {
		words[i] = w.User + "=" + strconv.FormatFloat(w.Weight, 'g', -1, 64)
	}
	return strings.Join(words, ",")
}
