// The certificate of the listener, and its renewal at run time.

import Foundation
import NIOSSL
import PosternTLS
import Synchronization

/// A certificate chain and its key, in PEM files that may be replaced at any time.
package final class TLSCertificates: Sendable {
    private struct State {
        var context: NIOSSLContext
        var stamp: [String]
    }

    private let certificatePath: String
    private let keyPath: String
    private let state: Mutex<State>

    /// Why the files cannot be used. Names files, never key material.
    package struct Failure: Error, Sendable, CustomStringConvertible {
        package let description: String
    }

    /// Reads the files. Throws `Failure`.
    package init(certificatePath: String, keyPath: String) throws {
        self.certificatePath = certificatePath
        self.keyPath = keyPath
        let stamp = Self.stamp([certificatePath, keyPath])
        state = Mutex(State(context: try Self.context(certificatePath, keyPath), stamp: stamp))
    }

    /// The context for new connections.
    var context: NIOSSLContext { state.withLock { $0.context } }

    /// Reads the files again if they changed; returns whether they did. Throws `Failure` if they cannot be used: the old ones
    /// stay, and the next call tries again.
    package func reloadIfChanged() throws -> Bool {
        let stamp = Self.stamp([certificatePath, keyPath])
        guard state.withLock({ $0.stamp }) != stamp else { return false }
        let context = try Self.context(certificatePath, keyPath)
        state.withLock { $0 = State(context: context, stamp: stamp) }
        return true
    }

    private static func context(_ certificatePath: String, _ keyPath: String) throws -> NIOSSLContext {
        let chain: [NIOSSLCertificate]
        do {
            chain = try NIOSSLCertificate.fromPEMFile(certificatePath)
        } catch {
            throw Failure(description: "\(certificatePath): no certificate in PEM form found")
        }
        do {
            let key = try NIOSSLPrivateKey(file: keyPath, format: .pem)
            var configuration = TLSConfiguration.makeServerConfiguration(
                certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key))
            configuration.requireForwardSecrecy()
            configuration.applicationProtocols = ["http/1.1"]
            return try NIOSSLContext(configuration: configuration)
        } catch {
            throw Failure(description: "\(keyPath): no private key in PEM form that belongs to \(certificatePath) found")
        }
    }

    /// Changes whenever a file is replaced or written; follows links.
    private static func stamp(_ paths: [String]) -> [String] {
        paths.map { path in
            let attributes = try? FileManager.default.attributesOfItem(atPath: (path as NSString).resolvingSymlinksInPath)
            let time = (attributes?[.modificationDate] as? Date)?.timeIntervalSince1970 ?? 0
            return "\(attributes?[.systemFileNumber] ?? 0) \(attributes?[.size] ?? 0) \(time)"
        }
    }
}
