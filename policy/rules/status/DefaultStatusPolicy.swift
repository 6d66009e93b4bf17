// The status policy that is part of the program.

/// The files of `policy/rules/status` as they were when the program was built.
package enum DefaultStatusPolicy {
    /// Text by path: `policy.yaml` and `tests.yaml`.
    package static let files = [
        "policy.yaml": Embedded.status_policy_yaml,
        "tests.yaml": Embedded.status_tests_yaml,
    ]
}
