package report

// addChart adds a chart as a picture in SVG.
func (p *htmlPage) addChart(c chart) {
	p.add(`
<div class="wide"><svg viewBox="0 0 %[1]v %[2]v" width="%[1]v" height="%[2]v" role="img" aria-label="%[3]v">
<text class="soft" x="0" y="14">%[3]v</text>`, c.Width, c.Height, c.Title)
	if c.Bars != "" {
		p.add(`<text class="soft" x="690" y="14">%v</text>`, c.Bars)
	}
	if c.Band != nil {
		p.add(`<rect class="band" x="%v" y="22" width="%v" height="%v"/>`, c.Band.X, c.Band.Width, c.Tall)
	}
	for _, t := range c.Ticks {
		p.add("\n"+`<line class="grid" x1="%[1]v" x2="%[1]v" y1="22" y2="%[2]v"/>`+
			`<text class="soft" text-anchor="middle" x="%[1]v" y="%[2]v" dy="15">%[3]v</text>`, t.X, c.Bottom, t.Text)
	}
	for i := range c.Rows {
		p.addRow(&c.Rows[i])
	}
	p.add("\n</svg></div>\n")
}

func (p *htmlPage) addRow(r *chartRow) {
	p.add("\n"+`<text class="%[1]v" x="0" y="%[2]v" dy="4">%[3]v</text><g class="%[1]v">`, r.Class, r.Y, r.Label)
	for _, m := range r.Marks {
		p.add(`<line class="whisker" x1="%[1]v" x2="%[2]v" y1="%[3]v" y2="%[3]v"/>`+
			`<circle class="%[4]v" cx="%[5]v" cy="%[3]v" r="4.5"><title>%[6]v</title></circle>`,
			m.Low, m.High, r.Y, m.Class, m.X, m.Tip)
	}
	p.add("</g>")
	if r.Bar != 0 {
		p.add(`<rect class="bar" x="%v" y="%v" width="%v" height="12" transform="translate(0 -6)"/>`, r.BarX, r.Y, r.Bar)
	}
	if r.Text != "" {
		p.add(`<text class="soft" x="694" y="%v" dy="4">%v</text>`, r.Y, r.Text)
	}
}
