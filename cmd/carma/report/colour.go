package report

import (
	"fmt"
	"image/color"
	"slices"
	"strings"

	"carma/mapper"
)

// colour is a line's or an area's. The plots are drawn with stand-ins, which
// give way to the variables of style.css, so that a page suits dark screens.
type colour struct {
	line, area color.Color
	class      string // in style.css
}

// policyColours is how many there are before they repeat.
const policyColours = 12

// palette gives each run the colour of its policy, the same in all reports, as
// far as that tells them apart.
func palette(runs []Run) []colour {
	own, ordered := make([]colour, len(runs)), make([]colour, len(runs))
	taken := map[string]bool{} // look-up only
	for i := range runs {
		ordered[i] = colours[i%policyColours]
		own[i] = colours[max(0, slices.Index(mapper.PolicyNames(), runs[i].Policy))%policyColours]
		taken[own[i].class] = true
	}
	if len(taken) < len(runs) {
		return ordered
	}
	return own
}

var (
	colours    [policyColours]colour
	ink        = color.RGBA{0x10, 0x20, 0x01, 0xff} // text
	muted      = color.RGBA{0x10, 0x20, 0x02, 0xff} // axes, what is reserved
	faint      = color.RGBA{0x10, 0x20, 0x03, 0xff} // grid
	limit      = color.RGBA{0x10, 0x20, 0x04, 0xff} // what there is at most
	themeNames = themes()
)

// themes names the variable of each stand-in.
func themes() *strings.Replacer {
	pairs := []string{
		"#102001", "var(--ink)", "#102002", "var(--muted)", "#102003", "var(--faint)", "#102004", "var(--limit)",
		// Text is in the font of the page.
		"font-family:Liberation Sans;font-variant:normal;font-weight:normal;font-style:normal;", "",
	}
	for i := range colours {
		n := uint8(i)
		colours[i] = colour{color.RGBA{0x30, 0x40, n, 0xff}, color.RGBA{0x50, 0x60, n, 0xff}, fmt.Sprintf("p%d", n)}
		pairs = append(pairs,
			fmt.Sprintf("#3040%02X", n), fmt.Sprintf("var(--p%d)", n),
			fmt.Sprintf("#5060%02X", n), fmt.Sprintf("var(--p%d);fill-opacity:.28", n))
	}
	return strings.NewReplacer(pairs...)
}
