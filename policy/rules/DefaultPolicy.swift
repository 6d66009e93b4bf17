// The policy that is part of the program: an installation decides by it from the start, whatever files are present.

/// The files of `policy/rules/default` as they were when the program was built.
package enum DefaultPolicy {
    /// Text by path: `policy.yaml` and `tests.yaml`.
    package static let files = [
        "policy.yaml": Embedded.default_policy_yaml,
        "tests.yaml": Embedded.default_tests_yaml,
    ]
}
