// What holds a secret says nothing of it.

/// A type with a secret in it. Printing it, or anything that contains it, says the type's name and no more: a caller that prints
/// a value, a library at the level `debug` among them, prints all that it is made of.
package protocol SecretHolder: CustomStringConvertible, CustomReflectable {}

extension SecretHolder {
    package var description: String { "<\(Self.self)>" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
