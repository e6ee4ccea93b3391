mod lab {
    pub struct Op(pub u32);
    impl std::ops::Add for Op {
        type Output = u32;
        #[inline(never)]
        fn add(self, o: Op) -> u32 { self.0 ^ o.0 }
    }
    #[inline(never)]
    pub fn generic<T: std::fmt::Debug>(t: T) -> usize { format!("{:?}", t).len() }
}
fn main() {
    println!("{} {}", std::hint::black_box(lab::Op(1)) + lab::Op(2), lab::generic(vec![1u8]));
}
