// The policy in the program. An installation decides by it from the start, regardless of the files
// that are present.

/// The files of `policy/rules/default` as they were when the program was built.
package enum DefaultPolicy {
    /// Text by path: `policy.yaml` and `tests.yaml`.
    package static let files = [
        "policy.yaml": Embedded.default_policy_yaml,
        "tests.yaml": Embedded.default_tests_yaml,
    ]
}
