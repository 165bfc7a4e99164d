//! The example that registers a rule and a gather strategy of its own does what it says.

#[path = "../../../quorate/examples/own_rule.rs"]
mod example;

#[test]
fn the_example_convenes() {
    example::main().expect("it comes to a decision");
}
