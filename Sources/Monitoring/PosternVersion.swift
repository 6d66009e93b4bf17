// The version of Postern.

package enum PosternVersion {
    package static let text = "0.1.0"
}
