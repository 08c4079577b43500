import { defineWords } from '../../i18n/words'

export const words = defineWords({
  title: { zh: 'ConfigMap', en: 'ConfigMaps' },
  create: { zh: '创建 ConfigMap', en: 'Create config map' },
  keys: { zh: '键', en: 'Keys' },
  data: { zh: '数据', en: 'Data' },
  usedBy: { zh: '使用者', en: 'Used by' },
  nobody: { zh: '没有', en: 'Nobody' },
  deletes: { zh: '引用它的 Pod 将无法再次启动。', en: 'Pods that refer to it cannot start again.' },
  deletesUsed: { zh: '正在被 {users} 使用；它们再次启动时会失败。', en: 'It is used by {users}; they will fail when they start again.' },
})
