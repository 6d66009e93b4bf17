// A type that holds a secret prints nothing of it.

/// A type with a secret in it. Printing it, or anything that contains it, shows only the type's name: code that prints a value,
/// including libraries at level `debug`, would otherwise print all its members.
package protocol SecretHolder: CustomStringConvertible, CustomReflectable {}

extension SecretHolder {
    package var description: String { "<\(Self.self)>" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
