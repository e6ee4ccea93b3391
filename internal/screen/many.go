package screen

func (v *view) many() section { return section{} }
