export default {
  base: './',
  build: { target: 'es2022' },
  worker: { format: 'es' },
  // In development the package's files stay beside each other, where they look for each other.
  optimizeDeps: { exclude: ['py-ort-web'] },
};
