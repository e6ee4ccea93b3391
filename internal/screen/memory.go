package screen

func (v *view) memory() section { return section{} }
