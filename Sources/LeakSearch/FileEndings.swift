// Endings of file names, which no domain has.

import Support

/// The endings of common files. None is a top-level domain: what ends so behind an at sign is a
/// file (`icon@2x.png`), and no address.
package enum FileEndings {
    package static let all = [
        "png", "jpg", "jpeg", "gif", "webp", "svg", "bmp", "tiff", "heic", "avif", "pdf", "doc",
        "docx", "xls", "xlsx", "ppt", "pptx", "odt", "ods", "odp", "rtf", "txt", "csv", "tsv",
        "json",
        "yaml", "yml", "xml", "html", "htm", "css", "js", "tsx", "jsx", "mp3", "mp4", "wav", "avi",
        "jar", "exe", "dll", "gz", "tgz", "bz2", "tar", "rar", "swift", "cpp",
    ]

    private static let octets = Set(all.map { Array($0.utf8) })

    /// - Parameter label: in any letter case.
    package static func contains(_ label: some Collection<UInt8>) -> Bool {
        (2...5).contains(label.count) && octets.contains(label.map(\.asciiLowercased))
    }
}
