// A type that contains a secret prints nothing of it.

/// A type with a secret in it. If the value, or anything that contains it, is printed, only the
/// type's name appears. Code that prints a value, including libraries at level `debug`, would
/// otherwise print all its members.
package protocol SecretHolder: CustomStringConvertible, CustomReflectable {}

extension SecretHolder {
    package var description: String { "<\(Self.self)>" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
