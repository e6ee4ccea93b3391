package screen

func (v *view) cpu() section { return section{} }
