import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.classfile.ClassFile;
import java.lang.classfile.ClassFileVersion;
import java.lang.classfile.ClassHierarchyResolver;
import java.lang.classfile.ClassModel;
import java.lang.classfile.CodeBuilder;
import java.lang.classfile.MethodModel;
import java.lang.classfile.MethodTransform;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;

/**
 * {@code CLASSPATH FOLDER}: prints the path of one jar, in the folder, with all that the jars of the class path have,
 * the first of a name as on the class path. A start looks for providers in each jar that there is, and opens it for
 * that. Every class of it can be in the JVM's cache, which holds none of before Java 6 and none of a signed jar. The
 * JVM verifies the former at every start by inference: here they have the same code with the stack maps of Java 8, so
 * that verification is as strict, and done when the cache is made. Signatures are left out, as the build has compared
 * each jar's hash with the committed one.
 */
final class CacheableJars {
  private static final int MAGIC_AND_VERSION = 8;
  private static final int FIRST_WITH_STACK_MAPS = ClassFile.JAVA_6_VERSION;
  private static final String SERVICES = "META-INF/services/";
  private static final String VERSIONS = "META-INF/versions/";
  private static final String MANIFEST = "Manifest-Version: 1.0\r\nMulti-Release: true\r\n\r\n";
  private static final LocalDateTime TIME = LocalDateTime.of(2026, 1, 1, 0, 0);

  public static void main(String[] args) throws IOException {
    List<URL> all = new ArrayList<>();
    String[] jars = args[0].split(File.pathSeparator);
    for (String jar : jars) {
      all.add(Path.of(jar).toUri().toURL());
    }
    Path merged = Files.createDirectories(Path.of(args[1])).resolve("coterie.jar");
    try (URLClassLoader types = new URLClassLoader(all.toArray(URL[]::new), ClassLoader.getPlatformClassLoader());
        OutputStream file = new BufferedOutputStream(Files.newOutputStream(merged));
        ZipOutputStream out = new ZipOutputStream(file)) {
      ClassFile classFile =
          ClassFile.of(
              ClassFile.StackMapsOption.GENERATE_STACK_MAPS,
              ClassFile.ClassHierarchyResolverOption.of(
                  ClassHierarchyResolver.ofResourceParsing(types).orElse(ClassHierarchyResolver.defaultResolver())));
      Map<String, ByteArrayOutputStream> services = new TreeMap<>();
      Set<String> written = new HashSet<>(Set.of(JarFile.MANIFEST_NAME));
      put(out, JarFile.MANIFEST_NAME, MANIFEST.getBytes(StandardCharsets.US_ASCII));
      for (String jar : jars) {
        merge(classFile, jar, out, written, services);
      }
      for (Map.Entry<String, ByteArrayOutputStream> service : services.entrySet()) {
        put(out, service.getKey(), service.getValue().toByteArray());
      }
    }
    System.out.println(merged);
  }

  private static void merge(
      ClassFile classFile,
      String jar,
      ZipOutputStream out,
      Set<String> written,
      Map<String, ByteArrayOutputStream> services)
      throws IOException {
    try (JarFile in = new JarFile(jar, false)) {
      for (JarEntry entry : Collections.list(in.entries())) {
        String name = entry.getName();
        if (entry.isDirectory() || isOfSignature(name) || name.startsWith(VERSIONS) && !in.isMultiRelease()) {
          continue;
        }
        byte[] content;
        try (InputStream from = in.getInputStream(entry)) {
          content = from.readAllBytes();
        }
        if (name.startsWith(SERVICES)) {
          ByteArrayOutputStream providers = services.computeIfAbsent(name, _ -> new ByteArrayOutputStream());
          providers.writeBytes(content);
          providers.write('\n');
        } else if (written.add(name)) {
          boolean old = name.endsWith(".class") && isOld(content);
          put(out, name, old ? withStackMaps(classFile, classFile.parse(content)) : content);
        }
      }
    }
  }

  private static void put(ZipOutputStream out, String name, byte[] content) throws IOException {
    ZipEntry entry = new ZipEntry(name);
    entry.setTimeLocal(TIME);
    out.putNextEntry(entry);
    out.write(content);
    out.closeEntry();
  }

  /** A file of the signature itself. */
  private static boolean isOfSignature(String name) {
    return name.matches("META-INF/[^/]+\\.(SF|RSA|DSA|EC)");
  }

  private static boolean isOld(byte[] head) {
    return head.length >= MAGIC_AND_VERSION && ((head[6] & 0xff) << 8 | head[7] & 0xff) < FIRST_WITH_STACK_MAPS;
  }

  private static byte[] withStackMaps(ClassFile classFile, ClassModel old) {
    return classFile.build(
        old.thisClass().asSymbol(),
        built -> {
          built.withVersion(ClassFile.JAVA_8_VERSION, 0);
          old.forEach(
              element -> {
                switch (element) {
                  case ClassFileVersion version -> {}
                  case MethodModel method ->
                      built.transformMethod(method, MethodTransform.transformingCode(CodeBuilder::with));
                  default -> built.with(element);
                }
              });
        });
  }
}
